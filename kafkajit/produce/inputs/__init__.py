"""Files of other formats → rows → the columns of records."""
