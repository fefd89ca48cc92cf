"""The Service on other machines: its calls as bytes, who answers them there, who asks here, and the one that Ray Serve runs."""
