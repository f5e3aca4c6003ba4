import type { Grammar, Grammars } from '../grammar.ts'
import { each, spell } from './spell.ts'

const manual = 'ceph(8), rbd(8), rados(8), Ceph 18'
const look = (operands?: Grammar['operands']): Grammar => ({ manual, ...(operands ? { operands } : {}) })
const group = (commands: Grammar['commands'], bare?: true): Grammar => ({ manual, ...(bare ? { bare } : {}), commands })
const all = { rest: 'text' } as const
const one = { first: ['name'], min: 1 } as const

/** auth, config, config-key and radosgw-admin print keys: left out, with every verb that changes. */
export const ceph: Grammars = {
  ceph: {
    manual,
    options: spell({
      name: '-f --format --cluster',
      number: '--connect-timeout',
      flag: '-v --version --concise --verbose',
    }),
    // -s is short for status; -w goes on for ever.
    keywords: ['-s', '--status'],
    commands: {
      ...each('-s --status status versions features quorum_status mon_status time-sync-status', look()),
      ...each('health df', look({ first: ['name'] })),
      osd: group({
        // `osd perf query add` begins to measure, `osd perf` tells.
        ...each('stat status perf utilization blocked-by', look()),
        ...each('ls dump tree df', look(all)),
        ...each('find metadata', look(one)),
        pool: group({
          ...each('ls stats autoscale-status', look(all)),
          get: look({ first: ['name', 'name'], min: 2 }),
        }),
        crush: group({ tree: look(all), rule: group(each('ls dump', look(all))) }),
        'erasure-code-profile': group({ ls: look(), ...each('get', look(one)) }),
      }),
      mon: group(each('stat dump metadata', look(all))),
      mgr: group({ ...each('stat services dump', look()), module: group(each('ls', look())) }),
      mds: group(each('stat metadata', look(all))),
      fs: group(each('ls status dump get', look(all))),
      pg: group({ ...each('stat dump dump_stuck ls ls-by-pool ls-by-osd map', look(all)) }),
      crash: group({ ...each('ls ls-new stat', look()), ...each('info', look(one)) }),
      orch: group({ ...each('status ls ps', look(all)), ...each('host device', group(each('ls', look()))) }),
      ...each('balancer progress', group(each('status', look()), true)),
      device: group(each('ls ls-by-host ls-by-daemon info', look(all))),
      log: group({ last: look({ first: ['number', 'name', 'name'] }) }),
      telemetry: group(each('status', look())),
    },
  },
  'ceph-volume': { manual: 'ceph-volume(8)', commands: { lvm: group(each('list', look(all))), inventory: look() } },
  rados: { manual, options: spell({ name: '-p --pool --format' }), commands: each('df lspools', look()) },
  rbd: {
    manual,
    options: spell({ name: '-p --pool --format', flag: '-l --long --pretty-format' }),
    commands: {
      ...each('ls list du info status showmapped', look(all)),
      ...each('snap', group(each('ls list', look(all)))),
      mirror: group({ pool: group(each('status info', look(all))) }),
    },
  },
}
