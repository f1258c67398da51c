"""One module for each thing that operating systems do differently, with the same calls on all.

`current_folder` keeps processes from code that lies where they are started.
"""
