"""What runs on rented machines: Python 3.5, the standard library alone, importing only itself."""
