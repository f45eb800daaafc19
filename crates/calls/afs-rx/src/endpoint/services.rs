//! Table of the services that the endpoint offers.

use super::Endpoint;
use crate::error::ListenError;
use crate::security::{ServerSecurity, ServerSession};

/// Options of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServiceOptions {
    /// Hold the first call of a peer that was not heard from recently until it replies to a ping: docs/protocol/rx.md
    /// "9. Keepalive", reachability check.
    pub reachability_check: bool,
}

#[derive(Default)]
pub(super) struct ServiceList(Vec<Service>);

struct Service {
    id: u16,
    options: ServiceOptions,
    classes: Vec<Box<dyn ServerSecurity>>,
}

impl ServiceList {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A session for a new connection, when the service is offered under this index.
    pub(super) fn accept(&mut self, id: u16, index: u8) -> Option<(Box<dyn ServerSession>, ServiceOptions)> {
        let service = self.0.iter_mut().find(|service| service.id == id)?;
        let class = service.classes.iter_mut().find(|class| class.index() == index)?;
        Some((class.accept(), service.options))
    }
}

impl Endpoint {
    /// Offers a service under the given security classes.
    pub fn listen(
        &mut self,
        service: u16,
        security: Vec<Box<dyn ServerSecurity>>,
    ) -> Result<(), ListenError> {
        self.listen_with(service, security, ServiceOptions::default())
    }

    /// Offers a service with options.
    pub fn listen_with(
        &mut self,
        service: u16,
        security: Vec<Box<dyn ServerSecurity>>,
        options: ServiceOptions,
    ) -> Result<(), ListenError> {
        let mut indices: Vec<u8> = security.iter().map(|class| class.index()).collect();
        indices.sort_unstable();
        indices.dedup();
        if service == 0 || indices.is_empty() || indices.len() < security.len() {
            return Err(ListenError::Invalid(service));
        }
        if self.services.0.iter().any(|offered| offered.id == service) {
            return Err(ListenError::Duplicate(service));
        }
        if self.services.0.len() >= self.config.services_max {
            return Err(ListenError::TooMany);
        }
        self.services.0.push(Service { id: service, options, classes: security });
        Ok(())
    }
}
