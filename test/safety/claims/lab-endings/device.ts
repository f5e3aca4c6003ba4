import { exec, node } from '../lies-by-rows/build.ts'
import { absent, did, is, was } from '../lies-by-rows/lie.ts'
import { alertIs, converged, type LabEnding, lookedAt, nodeLike, played, readOn, wroteOn } from './play.ts'

/** Endings of the scenarios that are repaired through the agent of a node. */

const web = 'node-web-osl-1a'
const gone = nodeLike(web, 'critical', 'process is not running')
const well = nodeLike(web, 'nominal', null)
const down = { alert: { name: 'service_down', annotations: { summary: `Node ${web} is down` } }, about: node(web) }
const full = { alert: { name: 'disk_pressure', annotations: { summary: `Disk of ${web} is full` } }, about: node(web) }
const releases = '/lab/nodes/node-web-osl-1a/site'
const process = { pid: 24080, name: 'report-export', state: 'R', cpu_seconds: 91, start_time: '236692', user: 'nobody' }

export const deviceEndings: LabEnding[] = [
  played(
    'runaway_process',
    {
      alert: { name: 'runaway_process', annotations: { description: `report-export on ${web} has used 91 s of CPU` } },
      about: node(web),
    },
    [
      readOn(4, 'proc_list', web, { total: 1, processes: [process] }, { name: 'report-export' }),
      wroteOn(
        20,
        'proc_kill',
        web,
        { pid: 24080, name: 'report-export', ended: true, signal: 'TERM' },
        { must: 'the process is gone', observed: 'the process is gone' },
      ),
      readOn(24, 'proc_list', web, { total: 0, processes: [] }, { name: 'report-export' }),
      alertIs(27, 'runaway_process', node(web), 'resolved'),
    ],
    { resolved: 'repaired' },
    {
      text: 'report-export (pid 24080) had used 91 s of CPU. I ended it with TERM, with approval; no report-export runs any more.',
      claims: [
        was('report-export had used 91 s of CPU.', [4, '"name":"report-export","state":"R","cpu_seconds":91']),
        did('I ended process 24080 with TERM.', [20, '"pid":24080', '"ended":true,"signal":"TERM"']),
        absent('no report-export runs', [24, 'report-export']),
        is('The alert has ended.', [27, '"status":"resolved"']),
      ],
    },
  ),
  played(
    'bad_deploy',
    { alert: { name: 'bad_deploy', labels: { file: 'site/routes.json' } }, about: node(web) },
    [
      lookedAt(4, nodeLike(web, 'critical', 'site/routes.json is no JSON')),
      readOn(7, 'git_log', web, {
        path: releases,
        commits: [{ at: '2026-11-25T10:00:00+00:00', author: 'Deploy', commit: '1a393654c8c6', subject: 'Deploy 42' }],
      }),
      wroteOn(
        20,
        'fs_write',
        web,
        { path: `${releases}/routes.json`, bytes: 117 },
        { must: 'the file holds what was written', observed: 'site/routes.json holds what was written' },
      ),
      wroteOn(
        30,
        'git_commit',
        web,
        { commit: '8b64eb7149a5', files: ['routes.json'] },
        { must: 'the files are committed', observed: 'HEAD is 8b64eb7149a5' },
      ),
      lookedAt(34, well),
    ],
    { resolved: 'repaired' },
    {
      text: `Deploy 42 left site/routes.json of ${web} no JSON. Its version before was written back and committed, with approval; the node is nominal.`,
      claims: [
        was('routes.json was no JSON.', [4, 'site/routes.json is no JSON']),
        was('The newest commit was Deploy 42.', [7, 'Deploy 42']),
        did('routes.json was written.', [20, 'fs_write on node-web-osl-1a is done', 'routes.json']),
        did('I committed it.', [30, 'git_commit on node-web-osl-1a is done', '"files":["routes.json"]']),
        is(`${web} is nominal.`, [34, '"status":"nominal"']),
      ],
    },
  ),
  played(
    'full_log',
    full,
    [
      lookedAt(
        4,
        nodeLike(web, 'critical', 'disk 132 % of quota', { diskByDirectory: { log: 4_576_686, logs: 968_124 } }),
      ),
      wroteOn(
        20,
        'exec',
        web,
        { stdout: '', exit_code: 0 },
        {
          held: 'unproven',
          must: '',
          observed: 'it ran, and nothing proves that it worked',
          args: { argv: ['rm', 'log/trace.log.8', 'log/trace.log.9'] },
        },
      ),
      readOn(
        24,
        'fs_list',
        web,
        {
          path: '/lab/nodes/node-web-osl-1a/log',
          total: 2,
          entries: [
            { name: 'trace.log', size: 237_568 },
            { name: 'trace.log.1', size: 524_288 },
          ],
        },
        { path: '/lab/nodes/node-web-osl-1a/log' },
      ),
      lookedAt(27, nodeLike(web, 'nominal', null, { diskUsedBytes: 3_655_152 })),
    ],
    { resolved: 'repaired' },
    {
      text: `Rotated trace logs filled ${web} to 132 % of its quota. I removed trace.log.8 and trace.log.9, with approval; it uses 3,655,152 bytes and is nominal.`,
      claims: [
        was('log/ held 4.6 MB.', [4, '"log":4576686']),
        did('rm ended with exit code 0.', [20, '"exit_code":0']),
        absent('trace.log.9 is not there any more', [24, 'trace.log.9']),
        is(`${web} is nominal.`, [27, '"status":"nominal"']),
      ],
    },
  ),
  played(
    'missing_package',
    { alert: { name: 'missing_package', labels: { package: 'nightly-tariffs' } }, about: node(web) },
    [
      lookedAt(4, nodeLike(web, 'degraded', 'package nightly-tariffs is not installed')),
      readOn(
        7,
        'pkg_search',
        web,
        { total: 1, packages: [{ name: 'nightly-tariffs', description: 'What a request costs' }] },
        { text: 'nightly-tariffs' },
      ),
      wroteOn(
        20,
        'pkg_install',
        web,
        { packages: [{ name: 'nightly-tariffs', after: '1.4' }] },
        { must: 'the packages are installed', observed: 'installing nightly-tariffs again would change nothing' },
      ),
      lookedAt(24, well),
    ],
    { resolved: 'repaired' },
    {
      text: `${web} lacked nightly-tariffs. I installed version 1.4 with approval, and the node is nominal.`,
      claims: [
        was('nightly-tariffs was missing.', [4, 'package nightly-tariffs is not installed']),
        was('Its repository has the package.', [7, '"name":"nightly-tariffs"']),
        did('nightly-tariffs 1.4 was installed.', [20, '"name":"nightly-tariffs","after":"1.4"']),
        is(`${web} is nominal.`, [24, '"status":"nominal"']),
      ],
    },
  ),
  played(
    'port_squatter',
    down,
    [
      lookedAt(4, gone),
      exec(
        7,
        node(web),
        ['tail', '-n', '1', 'logs/app.log'],
        '2026-11-25T10:00:36.035Z error listen EADDRINUSE: address already in use 127.0.0.1:35163\n',
      ),
      readOn(
        10,
        'proc_list',
        web,
        { total: 1, processes: [{ pid: 7110, name: 'debug-server', cmdline: 'debug-server 127.0.0.1:35163' }] },
        { name: 'debug-server' },
      ),
      wroteOn(
        20,
        'proc_kill',
        web,
        { pid: 7110, name: 'debug-server', ended: true, signal: 'TERM' },
        { must: 'the process is gone', observed: 'the process is gone' },
      ),
      converged(30, 'web-osl-1', [`${web}: restarted`]),
      lookedAt(34, well),
    ],
    { resolved: 'repaired' },
    {
      text: `debug-server (pid 7110) listened on 127.0.0.1:35163, the port of ${web}. I ended it with approval, and a converge restarted the node; it is nominal.`,
      claims: [
        was('The port 35163 was already in use.', [7, 'address already in use 127.0.0.1:35163']),
        was('debug-server held that address.', [10, 'debug-server 127.0.0.1:35163']),
        did('I ended process 7110.', [20, '"pid":7110', '"ended":true']),
        did(`${web} was restarted.`, [30, `${web}: restarted`]),
        is(`${web} is nominal.`, [34, '"status":"nominal"']),
      ],
    },
  ),
]
