# The course in a container: docker build -t real-ranks . && docker run --rm -it -p 8888:8888 real-ranks
# CPU build of torch: --build-arg PIP_EXTRA_INDEX_URL=<PyTorch's index address for "CPU">
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git make \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home learner
USER learner
WORKDIR /home/learner/course
COPY --chown=learner . .
ARG PIP_EXTRA_INDEX_URL
RUN make venv
# Inside the container JupyterLab must listen on all addresses; Docker publishes only the port named above.
CMD ["make", "lab", "LAB_ARGS=--no-browser --ip 0.0.0.0 --port 8888"]
