"""One of every element of Streamlit's whose insides Headlight knows."""

import time

import plotly.graph_objects as go
import streamlit as st

from app.shell import style
from app.streamlit_edge import history
from app.streamlit_edge.departures import when_gone
from app.streamlit_edge.yielding import give_way
from tests.app.edge_events import BROKEN_OFF, CLEARED, COLLECTED, GONE

history.read_on()
st.set_page_config(layout="wide")
st.html(style.page_style())
who = st.session_state.setdefault("who", st.query_params.get("who", ""))  # a visitor's name, to be told from all others
when_gone(lambda: GONE.append(who))
st.text(f"broken off: {' '.join(BROKEN_OFF)}, gone: {' '.join(GONE)}, cleared: {' '.join(CLEARED)}, all")
st.text(f"address: {st.query_params.to_dict()}")
st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.text(f"runs: {st.session_state['runs']}, collected: {len(COLLECTED)}")
left, right = st.columns(2)
with left:
    said = st.text_area("Text", "one", key="box_text_0", bind="query-params")
    st.text(f"said: {said!r}")
    st.menu_button("Examples", ["first", "second"], key="examples")
    st.selectbox("One", ["a", "b"])
    st.multiselect("Many", ["a", "b"], ["a"])
    st.segmented_control("Part", ["p", "q", "r"], default="p", key="part", required=True)
with right:
    with st.container(key="planning"):
        st.slider("Batch", 1, 9, 3, key="plan_batch", help="How many at a time")
    with st.expander("More"):
        st.text("more")
st.caption("A caption")
st.dataframe({"a": [1, 2]})
st.plotly_chart(go.Figure(go.Bar(y=[1, 2])), theme=None, key="chart")
st.button("Next")
if st.button("Write"):
    st.query_params["late"] = "yes"
if st.button("Clear"):
    st.cache_resource.clear()
    CLEARED.append(who)
if st.button("Wait"):
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            time.sleep(0.05)
            give_way()
    except BaseException:
        BROKEN_OFF.append(who)
        raise
st.button("Below", key="below")
