"""The Service on other machines: its wire format, its HTTP server and client, and its deployment on Ray Serve."""
