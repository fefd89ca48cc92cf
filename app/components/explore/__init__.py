"""Everything on the Explore view that lives in the browser."""
