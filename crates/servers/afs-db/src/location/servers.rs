//! Servers in the location database: registration, look-up, change of addresses.

use std::net::Ipv4Addr;

use afs_wire::ids::Uuid;

use crate::rows::{ADDRESS, SERVER, SITE, UUID};
use crate::{ADDRESSES_MAX, LocationError, Refusal, Rows, RowsMut, SERVERS_MAX, Server, ServerSlot};

/// The server in a slot.
pub(crate) fn by_slot(
    rows: &(impl Rows + ?Sized),
    slot: ServerSlot,
) -> Result<Option<Server>, LocationError> {
    rows.get(SERVER, &[slot.0])?.map(|row| Server::decode(slot, &row)).transpose()
}

/// The slot that owns an address.
pub(crate) fn slot_of(
    rows: &(impl Rows + ?Sized),
    address: Ipv4Addr,
) -> Result<Option<ServerSlot>, LocationError> {
    rows.get(ADDRESS, &address.octets())?.map(|row| slot(&row)).transpose()
}

/// The server that owns an address.
pub(crate) fn by_address(
    rows: &(impl Rows + ?Sized),
    address: Ipv4Addr,
) -> Result<Option<Server>, LocationError> {
    slot_of(rows, address)?.map_or(Ok(None), |slot| by_slot(rows, slot))
}

/// The server registered with a permanent name.
pub(crate) fn by_uuid(rows: &(impl Rows + ?Sized), uuid: Uuid) -> Result<Option<Server>, LocationError> {
    rows.get(UUID, &uuid.0)?.map(|row| slot(&row)).transpose()?.map_or(Ok(None), |slot| by_slot(rows, slot))
}

/// All servers, by slot.
pub(crate) fn all(rows: &(impl Rows + ?Sized)) -> Result<Vec<Server>, LocationError> {
    rows.range(SERVER, &[0], &[255], usize::from(SERVERS_MAX))?
        .iter()
        .map(|(key, row)| Server::decode(slot(key)?, row))
        .collect()
}

/// The slot of the server with `address`; an unknown server gets a slot of its own, unregistered.
pub(crate) fn find_or_add(
    rows: &mut (impl RowsMut + ?Sized),
    address: Ipv4Addr,
) -> Result<ServerSlot, LocationError> {
    if let Some(slot) = slot_of(rows, address)? {
        return Ok(slot);
    }
    let slot = free_slot(rows)?.ok_or(Refusal::BadServer)?;
    write(rows, None, &Server { slot, uuid: None, uniquifier: 0, addresses: vec![address] })?;
    Ok(slot)
}

/// Registers a server's addresses under its permanent name
/// (docs/protocol vldb.md "4. Semantics", RegisterAddrs cases 1 to 5).
pub(crate) fn register(
    rows: &mut (impl RowsMut + ?Sized),
    uuid: Uuid,
    addresses: &[Ipv4Addr],
) -> Result<ServerSlot, LocationError> {
    let wanted = distinct(addresses);
    if wanted.is_empty() || wanted.len() > ADDRESSES_MAX {
        return Err(Refusal::IndexRange.into());
    }
    let known = by_uuid(rows, uuid)?;
    let others = sharing(rows, &wanted, known.as_ref().map(|server| server.slot))?;
    match known {
        Some(server) => {
            if others.iter().any(|other| other.addresses.iter().all(|address| wanted.contains(address))) {
                return Err(Refusal::MultipleAddresses.into());
            }
            release_addresses(rows, &others, &wanted)?;
            relist(rows, server, wanted)
        }
        None => match others.as_slice() {
            [] => {
                let slot = free_slot(rows)?.ok_or(Refusal::BadServer)?;
                write(rows, None, &Server { slot, uuid: Some(uuid), uniquifier: 1, addresses: wanted })?;
                Ok(slot)
            }
            [other] => take_over(rows, other, uuid, wanted),
            _ => Err(Refusal::MultipleAddresses.into()),
        },
    }
}

/// Changes or, with `from` = 255.255.255.255, removes an address
/// (docs/protocol vldb.md "4. Semantics", ChangeAddr).
pub(crate) fn change_address(
    rows: &mut (impl RowsMut + ?Sized),
    from: Ipv4Addr,
    to: Ipv4Addr,
) -> Result<(), LocationError> {
    if to.octets()[0] == 255 {
        return Err(Refusal::BadServer.into());
    }
    if from == Ipv4Addr::BROADCAST {
        return remove(rows, to);
    }
    let server = by_address(rows, from)?.ok_or(Refusal::NoEntry)?;
    if slot_of(rows, to)?.is_some_and(|slot| slot != server.slot) {
        return Err(Refusal::MultipleAddresses.into());
    }
    if server.uuid.is_some() || server.addresses.len() != 1 {
        return Err(Refusal::NoEntry.into());
    }
    write(rows, Some(&server), &Server { addresses: vec![to], ..server.clone() })
}

fn remove(rows: &mut (impl RowsMut + ?Sized), address: Ipv4Addr) -> Result<(), LocationError> {
    let server = by_address(rows, address)?.ok_or(Refusal::NoEntry)?;
    if !rows.range(SITE, &[server.slot.0, 0, 0, 0, 0], &[server.slot.0 + 1], 1)?.is_empty() {
        return Err(Refusal::IdExists.into());
    }
    for address in &server.addresses {
        rows.delete(ADDRESS, &address.octets())?;
    }
    if let Some(uuid) = server.uuid {
        rows.delete(UUID, &uuid.0)?;
    }
    rows.delete(SERVER, &[server.slot.0])
}

/// Servers other than `own` that have one of the addresses, by slot.
fn sharing(
    rows: &(impl Rows + ?Sized),
    addresses: &[Ipv4Addr],
    own: Option<ServerSlot>,
) -> Result<Vec<Server>, LocationError> {
    let mut slots = std::collections::BTreeSet::new();
    for address in addresses {
        slots.extend(slot_of(rows, *address)?.filter(|slot| Some(*slot) != own));
    }
    slots.into_iter().map(|slot| by_slot(rows, slot)?.ok_or_else(|| Refusal::Damaged.into())).collect()
}

/// Removes addresses from the servers that had them. None of them loses its last one, as the caller has
/// checked.
fn release_addresses(
    rows: &mut (impl RowsMut + ?Sized),
    others: &[Server],
    taken: &[Ipv4Addr],
) -> Result<(), LocationError> {
    for other in others {
        let mut shrunk = other.clone();
        shrunk.addresses.retain(|address| !taken.contains(address));
        shrunk.uniquifier = shrunk.uniquifier.wrapping_add(1);
        write(rows, Some(other), &shrunk)?;
    }
    Ok(())
}

/// Gives a registered server a new address list; the same list is no change, so that clients need not
/// refetch.
fn relist(
    rows: &mut (impl RowsMut + ?Sized),
    server: Server,
    addresses: Vec<Ipv4Addr>,
) -> Result<ServerSlot, LocationError> {
    if server.addresses != addresses {
        let uniquifier = server.uniquifier.wrapping_add(1);
        write(rows, Some(&server), &Server { addresses, uniquifier, ..server.clone() })?;
    }
    Ok(server.slot)
}

/// A server with a new UUID on a known address keeps the volumes recorded there.
fn take_over(
    rows: &mut (impl RowsMut + ?Sized),
    old: &Server,
    uuid: Uuid,
    addresses: Vec<Ipv4Addr>,
) -> Result<ServerSlot, LocationError> {
    let uniquifier = old.uniquifier.wrapping_add(1);
    write(rows, Some(old), &Server { slot: old.slot, uuid: Some(uuid), uniquifier, addresses })?;
    Ok(old.slot)
}

/// Writes a server and updates both indexes.
pub(crate) fn write(
    rows: &mut (impl RowsMut + ?Sized),
    old: Option<&Server>,
    new: &Server,
) -> Result<(), LocationError> {
    if let Some(old) = old {
        for address in &old.addresses {
            rows.delete(ADDRESS, &address.octets())?;
        }
        if let Some(uuid) = old.uuid {
            rows.delete(UUID, &uuid.0)?;
        }
    }
    for address in &new.addresses {
        rows.put(ADDRESS, &address.octets(), &[new.slot.0])?;
    }
    if let Some(uuid) = new.uuid {
        rows.put(UUID, &uuid.0, &[new.slot.0])?;
    }
    rows.put(SERVER, &[new.slot.0], &new.encode())
}

fn free_slot(rows: &(impl Rows + ?Sized)) -> Result<Option<ServerSlot>, LocationError> {
    let taken = all(rows)?;
    Ok((1..=SERVERS_MAX).map(ServerSlot).find(|slot| taken.iter().all(|server| server.slot != *slot)))
}

/// Addresses without zeros and duplicates, in the given order.
fn distinct(addresses: &[Ipv4Addr]) -> Vec<Ipv4Addr> {
    let mut distinct = Vec::new();
    for address in addresses {
        if !address.is_unspecified() && !distinct.contains(address) {
            distinct.push(*address);
        }
    }
    distinct
}

fn slot(row: &[u8]) -> Result<ServerSlot, LocationError> {
    match row {
        [slot] => Ok(ServerSlot(*slot)),
        _ => Err(Refusal::Damaged.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryRows;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    fn refused<T>(refusal: Refusal) -> Result<T, LocationError> {
        Err(refusal.into())
    }

    const A: Uuid = Uuid([1; 16]);
    const B: Uuid = Uuid([2; 16]);

    #[test]
    fn case_1_known_uuid_gets_its_list_replaced() {
        let mut rows = MemoryRows::default();
        let slot = register(&mut rows, A, &[ip(1), ip(2)]).unwrap();
        assert_eq!(register(&mut rows, A, &[ip(2), ip(3), ip(3), Ipv4Addr::UNSPECIFIED]), Ok(slot));
        let server = by_uuid(&rows, A).unwrap().unwrap();
        assert_eq!((server.uniquifier, server.addresses), (2, vec![ip(2), ip(3)]));
        assert_eq!(by_address(&rows, ip(1)), Ok(None));
    }

    #[test]
    fn case_1_without_a_change_writes_nothing() {
        let mut rows = MemoryRows::default();
        register(&mut rows, A, &[ip(1)]).unwrap();
        register(&mut rows, A, &[ip(1)]).unwrap();
        assert_eq!(by_uuid(&rows, A).unwrap().unwrap().uniquifier, 1);
    }

    #[test]
    fn case_2_a_new_uuid_takes_over_the_one_server_it_overlaps() {
        let mut rows = MemoryRows::default();
        let plain = find_or_add(&mut rows, ip(1)).unwrap();
        assert_eq!(register(&mut rows, A, &[ip(1), ip(2)]), Ok(plain));
        assert_eq!(register(&mut rows, B, &[ip(2)]), Ok(plain));
        assert_eq!(by_uuid(&rows, A), Ok(None));
        assert_eq!(by_address(&rows, ip(1)), Ok(None));
        assert_eq!(by_uuid(&rows, B).unwrap().unwrap().addresses, vec![ip(2)]);
    }

    #[test]
    fn case_3_a_stranger_gets_a_new_slot() {
        let mut rows = MemoryRows::default();
        let first = register(&mut rows, A, &[ip(1)]).unwrap();
        let second = register(&mut rows, B, &[ip(2)]).unwrap();
        assert_ne!(first, second);
        assert_eq!(all(&rows).unwrap().len(), 2);
    }

    #[test]
    fn case_4_swallowing_or_overlapping_several_is_refused_and_changes_nothing() {
        let mut rows = MemoryRows::default();
        register(&mut rows, A, &[ip(1)]).unwrap();
        register(&mut rows, B, &[ip(2)]).unwrap();
        let before = rows.clone();
        assert_eq!(register(&mut rows, A, &[ip(1), ip(2)]), refused(Refusal::MultipleAddresses));
        assert_eq!(register(&mut rows, Uuid([3; 16]), &[ip(1), ip(2)]), refused(Refusal::MultipleAddresses));
        assert_eq!(all(&rows), all(&before));
    }

    #[test]
    fn case_5_shared_addresses_leave_the_other_server() {
        let mut rows = MemoryRows::default();
        register(&mut rows, A, &[ip(1)]).unwrap();
        register(&mut rows, B, &[ip(2), ip(3)]).unwrap();
        register(&mut rows, A, &[ip(1), ip(2)]).unwrap();
        let other = by_uuid(&rows, B).unwrap().unwrap();
        assert_eq!((other.uniquifier, other.addresses), (2, vec![ip(3)]));
        assert_eq!(by_address(&rows, ip(2)).unwrap().unwrap().uuid, Some(A));
    }

    #[test]
    fn registrations_need_one_to_fifteen_addresses() {
        let mut rows = MemoryRows::default();
        assert_eq!(register(&mut rows, A, &[Ipv4Addr::UNSPECIFIED]), refused(Refusal::IndexRange));
        let many: Vec<_> = (1..=16).map(ip).collect();
        assert_eq!(register(&mut rows, A, &many), refused(Refusal::IndexRange));
        register(&mut rows, A, &many[..15]).unwrap();
    }

    #[test]
    fn plain_addresses_change_and_go() {
        let mut rows = MemoryRows::default();
        find_or_add(&mut rows, ip(1)).unwrap();
        find_or_add(&mut rows, ip(5)).unwrap();
        register(&mut rows, A, &[ip(9)]).unwrap();
        let remove = Ipv4Addr::BROADCAST;
        let table = [
            (ip(1), Ipv4Addr::new(255, 1, 1, 1), refused(Refusal::BadServer)),
            (ip(77), ip(78), refused(Refusal::NoEntry)),
            (ip(1), ip(5), refused(Refusal::MultipleAddresses)),
            (ip(9), ip(10), refused(Refusal::NoEntry)),
            (ip(1), ip(2), Ok(())),
            (remove, ip(1), refused(Refusal::NoEntry)),
            (remove, ip(2), Ok(())),
            (remove, ip(9), Ok(())),
        ];
        for (from, to, outcome) in table {
            assert_eq!(change_address(&mut rows, from, to), outcome, "{from} {to}");
        }
        assert_eq!(by_uuid(&rows, A), Ok(None));
    }

    #[test]
    fn a_server_with_volumes_stays() {
        let mut rows = MemoryRows::default();
        let slot = find_or_add(&mut rows, ip(1)).unwrap();
        rows.put(SITE, &[slot.0, 0, 0, 0, 1], &[]).unwrap();
        assert_eq!(change_address(&mut rows, Ipv4Addr::BROADCAST, ip(1)), refused(Refusal::IdExists));
    }

    #[test]
    fn the_table_fills() {
        let mut rows = MemoryRows::default();
        for n in 0..SERVERS_MAX {
            find_or_add(&mut rows, Ipv4Addr::new(10, 1, 0, n)).unwrap();
        }
        assert_eq!(find_or_add(&mut rows, ip(1)), refused(Refusal::BadServer));
    }
}
