# The gateway on the runtime that its package pins, as any user, on a read-only root: docs/guides/containers.md.

FROM node:24-bookworm-slim AS package
WORKDIR /source
COPY . .
RUN npm ci --no-audit --no-fund && npm pack && deploy/image-folder model-gateway-*.tgz /image

FROM debian:bookworm-slim
COPY --from=package /image/ /
ENV GATEWAY_HOST=0.0.0.0 \
    GATEWAY_PORT=8080 \
    GATEWAY_DATA_DIR=/data \
    GATEWAY_PRINT_KEYS=off \
    MALLOC_ARENA_MAX=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 CMD ["model-gateway", "health", "--live"]
ENTRYPOINT ["node", "--no-memory-reducer", "--use-largepages=silent", "--max-semi-space-size=32", "/opt/model-gateway/node_modules/model-gateway/bin/model-gateway.cjs"]
CMD ["serve"]
