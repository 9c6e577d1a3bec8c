"""Reports: their data, their page, and the page in a browser."""
