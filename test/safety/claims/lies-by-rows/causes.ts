import { did, is, type Lie, liesOf, was } from './lie.ts'

/**
 * Causes put between two facts that are each so, directions turned round, and roles of parties
 * turned round.
 */

export const causes: Lie[] = [
  ...liesOf(
    'cause put between two facts',
    'shard',
    was('The disk is full because the replica lags.', [7, 'disk full', 'replica is 4210 s behind']),
    was(
      'The replica lags because of the long transaction of shop.',
      [10, 'replica is 4210 s behind'],
      [25, 'idle in transaction'],
    ),
    was('The backup led to the full disk.', [28, '"name":"backup_running"'], [7, 'disk full']),
    was('The report session made the replica fall behind.', [25, 'report'], [10, 'replica is 4210 s behind']),
    was('The checkpoint triggered the outage of replication.', [
      13,
      'LOG checkpoint complete',
      'outage of replication to node-db-osl-1b',
    ]),
    was('Timeouts of checkout filled the disk.', [46, 'timeout after 3000 ms waiting for db-osl-1'], [7, 'disk full']),
    was('db-osl-1 is degraded due to tenant-3.', [4, '"status":"degraded"'], [34, '"status":"degraded"']),
    was('Thanks to maxConnections 200 the disk ran full.', [4, '"maxConnections":200'], [7, 'disk full']),
    was('The disk filled up after customers were told.', [7, 'disk full'], [31, 'Writes to db-osl-1 fail since 00:50']),
    was('37 customers caused the load.', [31, '"customersAffected":37']),
  ),
  ...liesOf(
    'cause put between two facts',
    'web',
    was('report.py killed web.', [31, '"name":"report.py"'], [25, 'code=killed, status=9/KILL']),
    was(
      'web was killed because report.py used up the CPU.',
      [31, '"cpu_percent":97'],
      [25, 'code=killed, status=9/KILL'],
    ),
    was(
      'web was killed by the kernel for lack of memory.',
      [25, 'code=killed, status=9/KILL'],
      [13, '"max":943718400'],
    ),
    was(
      'The left lock made search fail and web answer with errors.',
      [34, '/srv/web/var/search.lock'],
      [10, '"last":0.3125'],
    ),
    was(
      'Payments timed out because the cache timed out.',
      [16, 'error upstream payments timed out'],
      [37, '"cache":"timeout"'],
    ),
    was(
      'The restart of node-web-ams-1a brought node-web-ams-1b down.',
      [40, 'node-web-ams-1a: restarted'],
      [52, '"status":"degraded"'],
    ),
    was('The errors are the result of Deploy 50.', [19, 'Deploy 50: new footer'], [10, '"last":0.3125']),
    was('The timeouts of payments stem from a pool without connections.', [
      16,
      'error upstream payments timed out',
      'warn pool has 3 free connections',
    ]),
    did('service_down ended since HighErrorRate was repaired.', [61, '"name":"service_down"', '"status":"resolved"']),
    was('The kill of web follows from the skipped reload.', [
      25,
      'reload of routes.json skipped',
      'code=killed, status=9/KILL',
    ]),
  ),
  ...liesOf(
    'cause put between two facts',
    'cluster',
    was('ledger-0 is pending because cart crashes.', [4, 'CrashLoopBackOff', 'Pending']),
    was('cart crashes for lack of memory.', [7, 'memory: 256Mi', 'Exit Code: 1']),
    was(
      'The idle transactions come from the crashing cart.',
      [28, '17 | idle in transaction'],
      [4, 'CrashLoopBackOff'],
    ),
    was('node-kube-3 is NotReady since it runs v1.30.6.', [25, 'NotReady                   worker   90d   v1.30.6']),
    was('The memory of node-kube-1 is used up by cart.', [19, '92%'], [4, 'cart-7c9f-x2x4k']),
  ),
  ...liesOf(
    'direction turned round',
    'web',
    was('The upstream timeout was changed from 3 to 30 seconds.', [
      22,
      '-  \\"upstreamTimeoutSeconds\\": 30',
      '+  \\"upstreamTimeoutSeconds\\": 3',
    ]),
    was('The error ratio fell from 0.31 to 0.002.', [10, '"before":0.002', '"after":0.31']),
    was('The error ratio went down at 02:11.', [10, '"changedAt":"2026-11-21T02:11:00Z"']),
    was('Payments could not reach web.', [16, 'error upstream payments timed out']),
    was('Deploy 51 was reverted to Deploy 50.', [19, 'Deploy 51: shorter timeouts', 'Deploy 50: new footer']),
    was('node-web-ams-1b went from degraded to nominal.', [7, '"status":"nominal"'], [52, '"status":"degraded"']),
  ),
  ...liesOf(
    'direction turned round',
    'plan',
    did('vm-106 was moved from host-osl-3 to host-osl-2.', [20, 'vm-106 moved from host-osl-2 to host-osl-3']),
    did('vm-101 was brought back to host-osl-1.', [20, 'vm-101 runs on host-osl-2']),
    is('vm-102 came from host-osl-3 to host-osl-1.', [27, '"host":"host-osl-1"']),
    did('vm-103 left host-osl-2.', [20, 'vm-103 runs on host-osl-2']),
  ),
  ...liesOf(
    'direction turned round',
    'cluster',
    was('cart was taken from 2.14.0 back to 2.13.2.', [13, '18        cart 2.13.2', '19        cart 2.14.0']),
    was('cart lost the connection to payments.', [10, 'fatal: no payments endpoint, exiting']),
  ),
  ...liesOf(
    'who did it is made up',
    'web',
    was('mira deployed the shorter timeouts.', [19, 'Deploy 51: shorter timeouts', '"author":"mira"']),
    was('An attacker killed web.', [25, 'code=killed, status=9/KILL']),
    was('root took the lock by hand.', [34, '"uid":0']),
    was('The payments team reverted search v2.', [19, 'Revert \\"Deploy 49: search v2\\"']),
    was('systemd killed web.', [25, 'systemd[1]: web.service: Main process exited, code=killed']),
    was('anna restarted nginx on node-web-ams-1b.', [85, 'Restart nginx on node-web-ams-1b']),
    was('Deploy put the limits in place.', [67, 'max_workers: 8'], [19, '"author":"Deploy"']),
    was('A customer started report.py.', [31, '"user":"report"']),
    did('An operator allowed the converge of web-ams-1.', [40, 'node-web-ams-1a: restarted']),
    was('nginx left the lock behind.', [34, '/srv/web/var/search.lock'], [31, '"name":"nginx"']),
  ),
]
