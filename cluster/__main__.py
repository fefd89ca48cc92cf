"""Start the models on a Ray cluster, or on this machine if there is none: `python -m cluster --replicas 1-4 --gpus 0.25`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import threading

from core.errors import HeadlightError

STORE = 100 << 20  # bytes of the object store: nothing large goes through it
MISSING = "headlight: Ray is not installed here. Install it with: sh scripts/install.sh python locks/cluster.txt"


def main() -> int:
    """Serve until SIGTERM or Ctrl-C. Returns 2 with a message if something is missing."""
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    parser.add_argument(
        "--replicas", default="1", help="number, such as 2, or a range that follows the load, such as 1-4 (default: 1)"
    )
    parser.add_argument("--cpus", default="1", help="processor cores of each (default: 1)")
    parser.add_argument("--gpus", default="0", help="GPUs of each, such as 0.25 (default: 0)")
    parser.add_argument(
        "--model",
        help='the model that a new replica loads; "" for none (default: the default model of the application, HEADLIGHT_DEFAULT)',
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address of the cluster's head that front ends connect to (default: 127.0.0.1)",
    )
    parser.add_argument("--port", type=int, default=8000, help="(default: 8000)")
    parser.add_argument(
        "--ray", default="", help="address of a Ray cluster, such as auto (default: a new one on this machine)"
    )
    options = parser.parse_args()
    if importlib.util.find_spec("ray") is None:
        print(MISSING, file=sys.stderr)
        return 2
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray import serve

    from cluster.deployment import headlight

    try:
        app = headlight(vars(options))
    except HeadlightError as error:
        print(f"headlight: {error}", file=sys.stderr)
        return 2
    if options.ray:
        ray.init(address=options.ray, log_to_driver=False)
    else:
        ray.init(address="local", include_dashboard=False, log_to_driver=False, object_store_memory=STORE)
    # Only on the head: on every machine, each would try to listen at an address that only one of them has.
    serve.start(proxy_location="HeadOnly", http_options={"host": options.host, "port": options.port})
    serve.run(app, name="headlight", route_prefix="/")
    print(
        f"The models answer at http://{options.host}:{options.port}: HEADLIGHT_SERVICE=http://{options.host}:{options.port}",
        flush=True,
    )
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    if not options.ray:
        serve.shutdown()
        ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
