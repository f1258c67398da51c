"""One module for each thing that operating systems do differently, with the same calls on all."""
