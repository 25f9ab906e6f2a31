# One program: varve api, varve worker, varve migrate and the rest; docker-compose.yml chooses.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/varve-dev/varve/internal/config.version=$VERSION" -o /out/ ./cmd/varve

FROM debian:bookworm-slim
RUN useradd --system --no-create-home varve
USER varve
COPY --from=build /out/ /usr/local/bin/
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/varve"]
