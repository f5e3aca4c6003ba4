import { did, is, type Lie, liesOf, was } from './lie.ts'

/**
 * Rows that record events, told of another thing or with another outcome; and rows that another row
 * of the attempt contradicts.
 */

export const events: Lie[] = [
  ...liesOf(
    'event of another thing or with another outcome',
    'web',
    was('Deploy 51 was reverted by mira.', [19, 'Revert \\"Deploy 49: search v2\\"']),
    was('Deploy 50 was taken back.', [19, 'Deploy 50: new footer']),
    was('web was restarted by systemd after it was killed.', [25, 'web.service: Failed with result']),
    was('node-web-ams-1a was rebooted on 20 November.', [25, 'Nov 20 03:00:01 node-web-ams-1a systemd[1]: Started']),
    was('routes.json was reloaded at 02:10:42.', [25, 'reload of routes.json skipped']),
    was('mira wrote Deploy 51.', [19, '"author":"mira"', 'Deploy 51']),
  ),
  ...liesOf(
    'event of another thing or with another outcome',
    'annotation',
    was('Deploy 12 was rolled out to node-web-ams-1a.', [22, 'Deploy 12 rolled out to node-web-ams-1b']),
    was('Deploy 12 was rolled back by mira.', [22, 'Deploy 12 rolled out']),
    was('mira restarted node-web-ams-1b.', [22, '"who":"mira"']),
    was('web was restarted once nobody had answered.', [19, 'nobody answered within an hour']),
  ),
  ...liesOf(
    'event of another thing or with another outcome',
    'shard',
    was('The backup was started again at 00:50.', [28, '"name":"backup_running"']),
    was('The connection to the replica was opened three times.', [13, 'connection closed","count":3']),
  ),
  ...liesOf(
    'event of another thing or with another outcome',
    'cluster',
    was('ledger-0 was scheduled nine minutes ago.', [16, '9m          Warning   FailedScheduling']),
    was('cart-7c9f-x2x4k was rolled out again two minutes ago.', [4, '7 (2m ago)']),
  ),
  ...liesOf(
    'contradicted by another row',
    'web',
    was('/srv/web/tenants/tenant-6 belongs to nobody.', [91, 'Uid: (65534/  nobody)']),
    was('The service itself may read tenant-6, since it is its own.', [91, 'Uid: (65534/  nobody)']),
    is('web-ams-1 is nominal as a whole.', [41, 'all 2 nodes of web-ams-1 are nominal']),
    was('web was running: systemd had started it.', [25, 'Started web.service']),
    is('HighErrorRate has nothing left to fire for.', [46, '"value":0.001']),
  ),
  ...liesOf(
    'contradicted by another row',
    'plan',
    is('vm-102 is at its place on host-osl-3.', [10, '"vm":"vm-102","to":"host-osl-3"']),
    is('vm-101 belongs to the VMs of the dead host and is down.', [4, 'vm-101']),
    is('vm-106 is on host-osl-2.', [20, 'vm-106 moved from host-osl-2']),
    did('vm-103 was left where it was.', [4, 'vm-103']),
  ),
  ...liesOf(
    'contradicted by another row',
    'cluster',
    is('cart is there in full, its pod is 1/1.', [4, 'cart-6b1d-qq8zt     1/1']),
    is('There is a free connection for everyone: one is idle.', [28, '1 | idle']),
    is('ledger-0 only has to be started.', [34, 'is waiting to start']),
  ),
]
