import type { Grammar, Grammars } from '../grammar.ts'
import { each, paths, spell } from './spell.ts'

const manual = 'ceph(8), rbd(8), rados(8), Ceph 18'
const look = (operands?: Grammar['operands']): Grammar => ({ manual, ...(operands ? { operands } : {}) })
const group = (commands: Grammar['commands'], bare?: true): Grammar => ({ manual, ...(bare ? { bare } : {}), commands })
const all = { rest: 'text' } as const
const one = { first: ['name'], min: 1 } as const
/** A daemon, and what it is asked: each word by itself is a daemon's name or a question. */
const asked = (questions: string): Grammar => ({
  manual,
  operands: { rest: 'name', min: 2 },
  refusesOperands: [`^(?!((osd|mon|mds|mgr|client)\\.[\\w-]+|${questions.trim().split(/\s+/).join('|')})$)`],
})
const questions = `status version perf dump schema ops dump_ops_in_flight dump_blocked_ops dump_historic_ops dump_historic_slow_ops
  dump_mempools mon_status quorum_status dump_scrubs get_latest_osdmap dump_pgstate_history session ls`
/** One setting that holds no password; as a whole they hold some. */
const setting: Grammar = {
  manual,
  operands: { first: ['name', 'name'], min: 2 },
  refuses: ['pass', 'key', 'secret', 'token', 'auth'],
}

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
        ...each('find metadata ok-to-stop safe-to-destroy', look({ rest: 'name', min: 1 })),
        'numa-status': look(),
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
      pg: group({ ...each('stat dump dump_stuck ls ls-by-pool ls-by-osd ls-by-primary map', look(all)) }),
      crash: group({ ...each('ls ls-new stat', look()), ...each('info', look(one)) }),
      orch: group({ ...each('status ls ps', look(all)), ...each('host device', group(each('ls', look()))) }),
      ...each('balancer progress', group(each('status', look()), true)),
      ...each('daemon tell', asked(questions)),
      config: group(each('get show', setting)),
      node: group({ ls: look({ first: ['name'] }) }),
      device: group(each('ls ls-by-host ls-by-daemon info get-health-metrics', look(all))),
      log: group({ last: look({ first: ['number', 'name', 'name'] }) }),
      telemetry: group(each('status', look())),
    },
  },
  'ceph-volume': {
    manual: 'ceph-volume(8)',
    commands: { lvm: group(each('list', look(all))), raw: group(each('list', look(all))), inventory: look() },
  },
  rados: {
    manual,
    options: spell({ name: '-p --pool --format' }),
    commands: {
      ...each('df lspools', look()),
      stat: look({ first: ['name'], min: 1 }),
      ...each('list-inconsistent-pg list-inconsistent-obj list-inconsistent-snapset', look(one)),
    },
  },
  'radosgw-admin': {
    // Users are shown with their keys, and so are zones and periods; the rest changes.
    manual: 'radosgw-admin(8), Ceph 18',
    style: 'word',
    options: spell({
      name: '--bucket --uid --shard-id --rgw-realm --rgw-zonegroup --rgw-zone',
      number: '--max-entries',
    }),
    commands: paths(
      'bucket list|stats, bucket limit check, sync status, sync error list, gc|lc|realm|zone|zonegroup|reshard|user list, datalog|mdlog|bilog status, usage show',
      look(),
    ),
  },
  cephadm: {
    manual: 'cephadm(8), Ceph 18',
    commands: { ...each('ls', look()) },
  },
  rbd: {
    manual,
    options: spell({ name: '-p --pool --format', flag: '-l --long --pretty-format' }),
    commands: {
      ...each('ls list du info status showmapped', look(all)),
      ...each('snap lock trash', group(each('ls list', look(all)))),
      device: group(each('list ls', look())),
      children: look(one),
      mirror: group({ pool: group(each('status info', look(all))) }),
    },
  },
}
