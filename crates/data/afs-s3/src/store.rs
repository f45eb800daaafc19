//! [`Bucket`] in an S3-compatible store.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use afs_bucket::{Bucket, Failure, Listed, Page, Reply};
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsCredential};
use object_store::client::HttpConnector;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CredentialProvider, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    RetryConfig,
};

use crate::config::{ConfigError, S3Config};
use crate::credentials::{FileCredentials, read};
use crate::failure::failure;
use crate::http::{Connections, Reach};
use crate::signing::SignedGet;
use crate::tls;
use crate::worker::Worker;

/// The objects of one drive in a bucket. Has a thread of its own.
pub struct S3Bucket {
    worker: Worker,
    objects: Arc<Objects>,
}

struct Objects {
    store: AmazonS3,
    /// Of all keys of the drive, with a `/` at its end.
    prefix: String,
    config: S3Config,
}

impl S3Bucket {
    /// A bucket to which no request was made yet.
    ///
    /// # Errors
    /// An unusable configuration, and credentials that cannot be read now.
    pub fn open(config: &S3Config) -> Result<Self, ConfigError> {
        read(&config.credentials)?;
        Self::attached(config)
    }

    /// As [`S3Bucket::open`]; the credentials may be absent until the first request.
    ///
    /// # Errors
    /// An unusable configuration.
    pub fn attached(config: &S3Config) -> Result<Self, ConfigError> {
        if !config.endpoint.secure && config.endpoint.is_remote() && !config.allow_clear {
            return Err(ConfigError::Clear(config.endpoint.clone()));
        }
        let tls = config.endpoint.secure.then(|| tls::connector(config.authority.as_deref())).transpose()?;
        let credentials = Arc::new(FileCredentials(config.credentials.clone()));
        let connections = Connections::new(config.endpoint.clone(), tls, Reach::Any);
        let objects = Objects::new(config, credentials, connections)?;
        Ok(Self { worker: Worker::start()?, objects: Arc::new(objects) })
    }

    /// Runs a request on the thread with the sockets. Dropping the reply ends the request.
    fn there<T, F>(&self, request: impl FnOnce(Arc<Objects>) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, object_store::Error>> + Send + 'static,
    {
        let running = self.worker.run(request(self.objects.clone()));
        Box::pin(async move {
            match running.await {
                Ok(reply) => reply.map_err(failure),
                Err(why) => Err(Failure::Broken(why)),
            }
        })
    }
}

/// What is tried again is decided in `afs-bucket`.
fn one_attempt() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() }
}

impl Objects {
    fn new(
        config: &S3Config,
        credentials: Arc<dyn CredentialProvider<Credential = AwsCredential>>,
        connections: impl HttpConnector,
    ) -> Result<Self, ConfigError> {
        let store = AmazonS3Builder::new()
            .with_bucket_name(&config.address.bucket)
            .with_region(&config.region)
            .with_endpoint(config.endpoint.to_string())
            .with_allow_http(!config.endpoint.secure)
            .with_credentials(credentials)
            .with_http_connector(connections)
            .with_retry(one_attempt())
            .with_disable_bulk_delete(true)
            .build()
            .map_err(|error| ConfigError::Store(error.to_string()))?;
        Ok(Self { store, prefix: format!("{}/", config.address.prefix), config: config.clone() })
    }

    async fn put_new(&self, key: &str, body: Vec<Bytes>) -> object_store::Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let body = body.into_iter().filter(|part| !part.is_empty()).collect::<PutPayload>();
        self.store.put_opts(&self.path(key)?, body, options).await.map(drop)
    }

    async fn get(&self, key: &str, range: Range<u64>) -> object_store::Result<Bytes> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        self.store.get_opts(&self.path(key)?, options).await?.bytes().await
    }

    async fn delete(&self, key: &str) -> object_store::Result<()> {
        self.store.delete(&self.path(key)?).await
    }

    fn path(&self, key: &str) -> object_store::Result<Path> {
        Ok(Path::parse(format!("{}{key}", self.prefix))?)
    }

    /// The credentials are read now, so that renewed ones are used at once.
    async fn signed_address(
        &self,
        key: &str,
        range: Range<u64>,
        (at, seconds): (SystemTime, u32),
    ) -> object_store::Result<String> {
        let credential = FileCredentials(self.config.credentials.clone()).get_credential().await?;
        let host = self.config.endpoint.authority();
        // Of bytes that need no escape: addresses and keys are checked.
        let path = format!("/{}/{}{key}", self.config.address.bucket, self.prefix);
        let region = &self.config.region;
        let get = SignedGet { region, host: &host, path: &path, range: Some(range), at, seconds };
        let scheme = if self.config.endpoint.secure { "https" } else { "http" };
        Ok(format!("{scheme}://{host}{}", get.target(&credential)))
    }

    async fn list(&self, prefix: &str, after: Option<String>) -> object_store::Result<Page> {
        let options = PaginatedListOptions {
            offset: after.map(|after| format!("{}{after}", self.prefix)),
            max_keys: Some(Page::OBJECTS_MAX),
            ..PaginatedListOptions::default()
        };
        let prefix = format!("{}{prefix}", self.prefix);
        let listed = self.store.list_paginated(Some(&prefix), options).await?;
        let object = |object: object_store::ObjectMeta| {
            let key = object.location.as_ref().strip_prefix(&self.prefix)?;
            Some(Listed { key: key.to_owned(), len: object.size })
        };
        let mut objects: Vec<_> = listed.result.objects.into_iter().filter_map(object).collect();
        objects.sort_by(|one, next| one.key.cmp(&next.key));
        Ok(Page { objects, more: listed.page_token.is_some() })
    }
}

impl Bucket for S3Bucket {
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()> {
        let key = key.to_owned();
        self.there(|objects| async move { objects.put_new(&key, body).await })
    }

    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes> {
        let key = key.to_owned();
        self.there(|objects| async move { objects.get(&key, range).await })
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.there(|objects| async move { objects.list(&prefix, after).await })
    }

    fn delete(&self, key: &str) -> Reply<()> {
        let key = key.to_owned();
        self.there(|objects| async move { objects.delete(&key).await })
    }

    fn is_clear(&self) -> bool {
        !self.objects.config.endpoint.secure
    }

    fn signed_address(&self, key: &str, range: Range<u64>, at: SystemTime, seconds: u32) -> Reply<String> {
        let key = key.to_owned();
        self.there(|objects| async move { objects.signed_address(&key, range, (at, seconds)).await })
    }
}

#[cfg(feature = "fuzzing")]
#[allow(clippy::expect_used, reason = "what it prepares itself does not fail")]
mod fuzzing {
    use super::*;
    use crate::http::Canned;
    use object_store::StaticCredentialProvider;

    /// What a bucket makes of each of its requests when its store replies these bytes.
    pub(crate) async fn read_any_reply(reply: Bytes, config: &S3Config) -> [Option<Failure>; 4] {
        let (key_id, secret_key, token) = ("A".into(), "B".into(), None);
        let credentials =
            Arc::new(StaticCredentialProvider::new(AwsCredential { key_id, secret_key, token }));
        let objects = Objects::new(config, credentials, Canned(reply)).expect("a sound configuration");
        let listed = objects.list("packs/", None).await;
        if let Ok(page) = &listed {
            let is_sorted = page.objects.is_sorted_by(|one, next| one.key <= next.key);
            assert!(is_sorted, "objects that are not in order");
        }
        [
            objects.get("k", 24..28).await.err(),
            listed.err(),
            objects.put_new("k", vec![Bytes::from_static(b"b")]).await.err(),
            objects.delete("k").await.err(),
        ]
        .map(|error| error.map(failure))
    }
}
#[cfg(feature = "fuzzing")]
pub(crate) use fuzzing::read_any_reply;
