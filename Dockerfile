# One program: varve api, varve worker, varve migrate and the rest; docker-compose.yml chooses.
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/varve-dev/varve/internal/config.version=$VERSION" -o /out/ ./cmd/varve

# nothing but the program: scripts/image.sh runs it so
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /usr/local/bin/
LABEL org.opencontainers.image.source="https://github.com/varve-dev/varve" org.opencontainers.image.licenses="Apache-2.0"
# a number: Kubernetes' runAsNonRoot takes no name
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/varve"]
