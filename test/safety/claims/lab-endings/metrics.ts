import { node, read, wrote } from '../lies-by-rows/build.ts'
import { did, is, was } from '../lies-by-rows/lie.ts'
import { alertIs, converged, type LabEnding, lookedAt, nodeLike, played, readOn, values, wroteOn } from './play.ts'

/** Endings of the scenarios that only metrics tell: the platform reads each node as nominal. */

const web = 'node-web-osl-1a'
const database = 'node-db-osl-1a'
const site = '/lab/nodes/node-web-osl-1a/site'
const well = nodeLike(web, 'nominal', null)
const about = (name: string, on = web) => ({ alert: { name }, about: node(on) })
const searchFails = 'error search failed: the index of search v2 is not there'
const locked =
  'error search failed: the index is locked: var/search.lock was left by reindex 4711, which ended by signal 9'

const errors = 'sum by (path, code) (rate(http_requests_total{instance="node-web-osl-1a.osl.lab.internal:8080"}[30s]))'
const failing = values(4, errors, [
  { value: 6.3, labels: { code: '500', path: '/search' } },
  { value: 7.2, labels: { code: '200', path: '/' } },
])
const logged = (seq: number, template: string, count: number) =>
  readOn(seq, 'search_logs', web, {
    source: web,
    isEmpty: false,
    summary: {
      asked: { labels: { path: '/lab/nodes/node-web-osl-1a/logs/search.log' } },
      lines: count,
      window: '15m',
      templates: [{ template, count, isNew: true, first: '2026-11-25T10:00:16Z', last: '2026-11-25T10:04:10Z' }],
      templatesFound: 1,
    },
    isPartial: false,
  })
const shown = readOn(10, 'git_show', web, {
  path: site,
  commit: 'c6b106ae31357b9daa1a2da7ec9bc9b5b99d3e47',
  subject: 'Deploy 43: search v2',
  diff: '-  "searchV2": false\n+  "searchV2": true\n',
  files: ['features.json'],
})
const reverted = wroteOn(
  20,
  'git_revert',
  web,
  {
    path: site,
    files: ['features.json'],
    commit: 'dc7d9d0e05d6',
    reverted: 'c6b106ae31357b9daa1a2da7ec9bc9b5b99d3e47',
  },
  {
    must: 'HEAD is the commit that takes the change back',
    observed: `HEAD of ${site} is dc7d9d0e05d6, and its files are as it has them`,
  },
)
const served = values(24, errors, [
  { value: 7.8, labels: { code: '200', path: '/search' } },
  { value: 0, labels: { code: '500', path: '/search' } },
])
const revertClaims = [
  was('search failed: the index of search v2 is not there.', [7, searchFails]),
  was('Deploy 43 switched searchV2 on.', [10, 'Deploy 43: search v2', '+  \\"searchV2\\": true']),
  did('I took the commit of Deploy 43 back.', [
    20,
    'git_revert on node-web-osl-1a is done',
    '"reverted":"c6b106ae31357b9daa1a2da7ec9bc9b5b99d3e47"',
  ]),
  is('/search answers without errors: 0 a second.', [24, '"value":0,"labels":{"code":"500","path":"/search"}']),
]

export const metricEndings: LabEnding[] = [
  played(
    'slow_leak',
    about('ServiceMemoryHigh'),
    [
      values(4, `process_resident_memory_bytes{instance="${web}"}`, [{ value: 506_000_000, unit: 'bytes' }]),
      converged(20, 'web-osl-1', [`${web}: restarted its process, which held 777486336 of 160000000 bytes`]),
      values(24, `process_resident_memory_bytes{instance="${web}"}`, [{ value: 75_880_000, unit: 'bytes' }]),
      lookedAt(27, well),
    ],
    { resolved: 'repaired' },
    {
      text: `The service of ${web} held 506 MB of memory. The converge restarted its process, which held 777,486,336 bytes by then; it holds 75.88 MB now.`,
      claims: [
        was('The service held 506 MB.', [4, '"value":506000000,"unit":"bytes"']),
        did('The converge restarted its process.', [
          20,
          'restarted its process, which held 777486336 of 160000000 bytes',
        ]),
        is('It holds about 76 MB.', [24, '"value":75880000,"unit":"bytes"']),
        is(`${web} is nominal.`, [27, '"status":"nominal"']),
      ],
    },
  ),
  played(
    'error_rate',
    about('HighErrorRate'),
    [
      failing,
      logged(7, searchFails, 600),
      shown,
      reverted,
      served,
      alertIs(27, 'HighErrorRate', node(web), 'resolved'),
    ],
    { resolved: 'repaired' },
    {
      text: 'Deploy 43 turned on search v2, whose index is not there: /search answered 500. I reverted that commit with approval; /search answers 200, and the alert ended.',
      claims: [...revertClaims, is('HighErrorRate is over.', [27, '"name":"HighErrorRate","status":"resolved"'])],
    },
  ),
  played(
    'red_herring',
    about('HighErrorRate'),
    [
      failing,
      logged(7, searchFails, 600),
      shown,
      values(13, `rate(process_cpu_seconds_total{instance="${web}"}[1m])`, [{ value: 0.61 }]),
      reverted,
      served,
    ],
    { resolved: 'repaired' },
    {
      text: 'Deploy 43 turned on search v2, whose index is not there. I reverted that commit with approval; /search answers 200. The service used 0.61 of a core beside it, and was left alone.',
      claims: [...revertClaims, was('The service used 0.61 of a core.', [13, '"value":0.61'])],
    },
  ),
  played(
    'noisy_neighbour',
    about('HighRequestRate'),
    [
      values(4, `sum by (tenant) (rate(http_requests_total{instance="${web}"}[1m]))`, [
        { value: 80.4, labels: { tenant: 'tenant-6' } },
        { value: 4.1, labels: { tenant: 'tenant-5' } },
      ]),
      lookedAt(7, well),
    ],
    { escalated: 'no_tool' },
    {
      text: `tenant-6 sends 80.4 requests a second to ${web}, twenty times as many as tenant-5. The node is nominal. A person talks to the tenant.`,
      claims: [
        is('tenant-6 sends about 80 requests a second.', [4, '"value":80.4,"labels":{"tenant":"tenant-6"}']),
        is('tenant-5 sends 4.1.', [4, '"value":4.1,"labels":{"tenant":"tenant-5"}']),
        is('The node is nominal all the same.', [7, '"status":"nominal"']),
      ],
    },
  ),
  played(
    'connection_pool',
    about('TooManyConnections', database),
    [
      values(4, 'sum by (application_name, state) (pg_stat_activity_count)', [
        { value: 17, labels: { state: 'idle in transaction', application_name: 'node-web-ams-1a' } },
        { value: 1, labels: { state: 'active', application_name: 'exporter' } },
      ]),
      converged(20, 'web-ams-1', ['node-web-ams-1a: restarted its report worker, which held 17 of 2 connections']),
      values(24, 'sum by (application_name, state) (pg_stat_activity_count)', [
        { value: 2, labels: { state: 'idle', application_name: 'node-web-ams-1a' } },
      ]),
      alertIs(27, 'TooManyConnections', node(database), 'resolved'),
    ],
    { resolved: 'repaired' },
    {
      text: `node-web-ams-1a held 17 connections of ${database}, idle in transaction. A converge of web-ams-1 restarted its report worker; it holds 2 now.`,
      claims: [
        was('node-web-ams-1a held 17 connections, idle in transaction.', [
          4,
          '"value":17,"labels":{"state":"idle in transaction","application_name":"node-web-ams-1a"}',
        ]),
        did('The converge restarted its report worker.', [
          20,
          'restarted its report worker, which held 17 of 2 connections',
        ]),
        is('It holds 2 connections now.', [
          24,
          '"value":2,"labels":{"state":"idle","application_name":"node-web-ams-1a"}',
        ]),
        is('TooManyConnections has ended.', [27, '"status":"resolved"']),
      ],
    },
  ),
  played(
    'clock_skew',
    about('NodeClockSkewDetected'),
    [
      values(4, `node_timex_offset_seconds{instance="${web}"}`, [{ value: 95 }]),
      converged(20, 'web-osl-1', [`${web}: stepped its clock, which was 95 s off`]),
      values(24, `node_timex_offset_seconds{instance="${web}"}`, [{ value: 0 }]),
    ],
    { resolved: 'repaired' },
    {
      text: `The clock of ${web} was 95 s off. A converge stepped it; its offset is 0 s.`,
      claims: [
        was('The clock was 95 s off.', [4, '"value":95']),
        did('The converge stepped the clock.', [20, 'stepped its clock, which was 95 s off']),
        is('The offset is 0.', [24, '"value":0']),
      ],
    },
  ),
  played(
    'certificate_ending',
    about('SslCertificateWillExpireSoon'),
    [
      values(4, `web_certificate_not_after_seconds{instance="${web}"} - time()`, [{ value: 72_000, unit: 'seconds' }]),
      converged(20, 'web-osl-1', [`${web}: renewed its certificate`]),
      values(24, `web_certificate_not_after_seconds{instance="${web}"} - time()`, [
        { value: 7_776_000, unit: 'seconds' },
      ]),
    ],
    { resolved: 'repaired' },
    {
      text: `The certificate of ${web} was to end in 20 hours. A converge renewed it; it lasts 90 days.`,
      claims: [
        was('The certificate had 20 hours left.', [4, '"value":72000,"unit":"seconds"']),
        did('The converge renewed the certificate.', [20, 'renewed its certificate']),
        is('It lasts 90 days now.', [24, '"value":7776000,"unit":"seconds"']),
      ],
    },
  ),
  played(
    'missing_data',
    about('TargetDown'),
    [
      values(4, `up{instance="${web}"}`, [{ value: 0 }]),
      read(
        7,
        'http_read',
        {
          source: 'web',
          isEmpty: false,
          summary: { path: '/metrics', status: 503, value: 'metrics are off' },
          isPartial: false,
        },
        { args: { path: '/metrics' } },
      ),
      lookedAt(10, well),
    ],
    { escalated: 'no_tool' },
    {
      text: `/metrics of ${web} answers 503, so its metrics cannot be seen; up is 0. The node is nominal. A restart would bring the metrics back, at a time that a person chooses.`,
      claims: [
        is('up is 0.', [4, '"value":0']),
        is('/metrics answers 503.', [7, '"path":"/metrics","status":503']),
        is('The node is nominal.', [10, '"status":"nominal"']),
      ],
    },
  ),
  played(
    'stale_lock',
    about('HighErrorRate'),
    [
      failing,
      logged(7, locked, 230),
      readOn(10, 'proc_list', web, { total: 0, processes: [] }, { name: 'reindex' }),
      wrote(
        20,
        'run_job',
        {
          data: {
            detail: 'unlock-search: rm ended with code 0',
            output: "removed '/lab/nodes/node-web-osl-1a/var/search.lock'\n",
            exit_code: 0,
          },
        },
        {
          on: [node(web)],
          args: { job: 'unlock-search', kind: 'node', id: web },
          held: 'held',
          must: 'the check mode of the job reports that nothing would change',
          observed: 'the check mode of unlock-search reports that nothing would change',
        },
      ),
      served,
      lookedAt(27, well),
    ],
    { resolved: 'repaired' },
    {
      text: `reindex 4711 left var/search.lock on ${web}, and /search answered 500. The job unlock-search removed the lock with approval; /search answers 200.`,
      claims: [
        was('The index was locked: reindex 4711 ended by signal 9 and left var/search.lock.', [
          7,
          'var/search.lock was left by reindex 4711, which ended by signal 9',
        ]),
        did('unlock-search removed the lock.', [20, 'unlock-search: rm ended with code 0', 'var/search.lock']),
        is('No answer of /search is a 500.', [24, '"value":0,"labels":{"code":"500","path":"/search"}']),
        is(`${web} is nominal.`, [27, '"status":"nominal"']),
      ],
    },
  ),
]
