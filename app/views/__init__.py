"""The views, one file each: widgets in, drawing out."""
