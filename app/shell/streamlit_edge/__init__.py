"""Every place that leans on something Streamlit does not promise, one each a module; tests/app/streamlit_edge holds Streamlit to it."""
