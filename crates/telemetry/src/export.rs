//! Spans as OTLP, sent to a collector.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use talaria_fetch::route;
use talaria_model::Timestamp;

use crate::Collector;
use crate::weave::{Kind, Span};

/// How long a collector has to take a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nobody can be told.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is none.
    #[error("{0} cannot be a collector's address")]
    Address(String),
    /// No requests can be made.
    #[error("no requests can be made: {0}")]
    Client(#[from] reqwest::Error),
    /// The settings make no sense.
    #[error("{0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

pub(crate) struct Exporter {
    exporter: SpanExporter,
    scope: InstrumentationScope,
}

impl Exporter {
    pub(crate) fn open(collector: &Collector) -> Result<Self, OpenError> {
        let Collector { base, proxy, headers, instance, version } = collector;
        let mut traces = base.clone();
        traces
            .path_segments_mut()
            .map_err(|()| OpenError::Address(base.to_string()))?
            .pop_if_empty()
            .extend(["v1", "traces"]);
        let client = route(reqwest::Client::builder(), proxy, base)?
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let headers: HashMap<String, String> =
            headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(traces.as_str())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(PATIENCE)
            .with_headers(headers)
            .build()?;
        let resource = Resource::builder_empty()
            .with_service_name("talaria")
            .with_attributes([
                KeyValue::new("service.version", *version),
                KeyValue::new("service.instance.id", instance.clone()),
            ])
            .build();
        exporter.set_resource(&resource);
        let scope = InstrumentationScope::builder("talaria").with_version(*version).build();
        Ok(Self { exporter, scope })
    }

    pub(crate) async fn export(&self, spans: Vec<Span>) -> Result<(), String> {
        let spans = spans.into_iter().map(|span| self.encode(span)).collect();
        self.exporter.export(spans).await.map_err(|error| error.to_string())
    }

    fn encode(&self, span: Span) -> SpanData {
        let mut links = SpanLinks::default();
        links.links.extend(span.link.map(|(trace, id)| Link::with_context(context(trace, id))));
        SpanData {
            span_context: context(span.trace, span.id),
            parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
            parent_span_is_remote: false,
            span_kind: match span.kind {
                Kind::Message => SpanKind::Server,
                Kind::Inside => SpanKind::Internal,
                Kind::Outwards => SpanKind::Client,
            },
            name: Cow::Owned(span.name),
            start_time: moment(span.from),
            // A clock may have been set back.
            end_time: moment(span.upto.max(span.from)),
            attributes: span
                .about
                .into_iter()
                .map(|(name, value)| KeyValue::new(name, value))
                .collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: match span.problem {
                Some(problem) => Status::error(problem),
                None => Status::Unset,
            },
            instrumentation_scope: self.scope.clone(),
        }
    }
}

fn context(trace: [u8; 16], id: [u8; 8]) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(trace),
        SpanId::from_bytes(id),
        TraceFlags::SAMPLED,
        false,
        TraceState::default(),
    )
}

fn moment(at: Timestamp) -> SystemTime {
    let millis = u64::try_from(at.as_millis()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}
