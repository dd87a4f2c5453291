# An image for a JupyterHub, or for one machine with Docker:
#     docker build -t tinyattn .
#     docker run --rm -p 8888:8888 tinyattn
# Each start makes the missing copies of the notebooks in ~/tinyattn-course, which may be a volume.
# Kernels are compiled for the processor that builds the image; on another processor, they are
# compiled again in the background.
FROM quay.io/jupyter/minimal-notebook:python-3.13
COPY --chown=${NB_UID}:${NB_GID} . /tmp/tinyattn
RUN pip install --no-cache-dir "/tmp/tinyattn[class]" && rm -r /tmp/tinyattn && \
    python -m tinyattn.warm
USER root
RUN echo '(cd "/home/${NB_USER}" && tinyattn class --copies-only) || true' \
    > /usr/local/bin/before-notebook.d/20-tinyattn.sh
USER ${NB_UID}
