"""Every place that leans on something Streamlit does not promise, one each a module; tests/app/test_streamlit_edge.py holds Streamlit to it."""
