"""What a transformer costs, before it runs: parameters, bytes, FLOPs in closed form, and the tracer that proves them."""

from .parameters import Parameters, parameters
from .plan import Plan, plan
from .runs import RunBytes, run_bytes

__all__ = ["Parameters", "Plan", "RunBytes", "parameters", "plan", "run_bytes"]
