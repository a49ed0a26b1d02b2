"""Stops of many ranks as few events, and the control requests that resume or pause them."""
