"""The screen: what a visitor sees of core, as a Streamlit application."""
