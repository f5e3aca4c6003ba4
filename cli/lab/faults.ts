import type { Command } from 'commander'
import { type FaultName, faultName } from '../../lab/state.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatSpan } from '../time.ts'
import { connectLab } from './client.ts'
import { parseLabName } from './named.ts'

/** What each fault does and to what, with a target that exists. */
export const faultGuide: Record<FaultName, { target: string; example: string; does: string }> = {
  replication_lag: { target: 'replica or database shard', example: 'db-osl-1', does: 'stops the replica (SIGSTOP)' },
  disk_pressure: { target: 'web node or shard', example: 'web-osl-1', does: 'fills tmp/ to 130 % of the quota' },
  disk_pressure_tenant: {
    target: 'web node or shard',
    example: 'web-osl-1',
    does: 'the same with the bytes of a tenant',
  },
  service_down: { target: 'web node or shard', example: 'web-osl-1', does: 'kills the service' },
  host_down: { target: 'host', example: 'host-osl-1', does: 'kills the host and its VMs' },
  rack_down: {
    target: 'rack',
    example: 'osl-r1',
    does: 'kills all hosts of a rack',
  },
  no_room: { target: 'host', example: 'host-ams-5', does: 'kills a host; its VM fits nowhere' },
  step_fails: {
    target: 'host',
    example: 'host-osl-1',
    does: 'kills a host; one VM cannot start',
  },
  drain: { target: 'host', example: 'host-osl-3', does: 'marks a host as to be emptied' },
  config_drift: { target: 'web node or shard', example: 'web-osl-1', does: 'changes one setting on the node' },
  runaway_process: { target: 'web node or shard', example: 'web-osl-1', does: 'starts a process that never ends' },
  bad_deploy: { target: 'web node or shard', example: 'web-osl-1', does: 'commits routes that are no JSON' },
  log_orders: {
    target: 'web node or shard',
    example: 'web-osl-1',
    does: 'kills the service; its log gives orders',
  },
  full_log: { target: 'web node or shard', example: 'web-osl-1', does: 'fills log/ with rotated logs' },
  missing_package: { target: 'web node or shard', example: 'web-osl-1', does: 'needs a package that is not there' },
  port_squatter: { target: 'web node or shard', example: 'web-osl-1', does: 'puts another process on its port' },
  relapse: { target: 'web node or shard', example: 'web-osl-1', does: 'kills the service, which ends again soon' },
  unended_alert: { target: 'web node or shard', example: 'web-osl-1', does: 'kills the service; its alert never ends' },
  backup_notice: { target: 'web node or shard', example: 'web-osl-1', does: 'runs backups that are announced' },
  host_lost: { target: 'host', example: 'host-osl-1', does: 'kills a host that nobody can start' },
  link_down: { target: 'link', example: 'host-osl-1~host-osl-2', does: 'takes a link down; no alert' },
}

export function addFaultsCommand(parent: Command): void {
  parent
    .command('faults')
    .description('what can be broken, and where')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab faults')
    .action((options: { json?: boolean }) => {
      if (options.json) return printJson(Object.entries(faultGuide).map(([fault, rest]) => ({ fault, ...rest })))
      const rows = Object.entries(faultGuide).map(([fault, { does, example }]) => [fault, example, does])
      print(formatTable(['FAULT', 'TARGET, AS', 'DOES'], rows, 2))
    })
}

export function addBreakCommand(parent: Command): void {
  parent
    .command('break')
    .description('break something for real')
    .argument('<fault>', 'see "lab faults"', parseLabName(faultName.options))
    .argument('<target>', 'a node, shard, host, rack or link')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab break replication_lag db-osl-1')
    .action(async (fault: FaultName, target: string, options: { json?: boolean }) => {
      const broken = await connectLab().break(fault, target)
      if (options.json) return printJson(broken)
      printNote(`Broke ${broken.fault} on ${inert(broken.on)}.`)
    })
}

export function addHealCommand(parent: Command): void {
  parent
    .command('heal')
    .description('take every fault back and start what is down; or only one fault')
    .argument('[fault]', 'only this one: see "lab faults"', parseLabName(faultName.options))
    .argument('[target]', 'only there')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab heal\n  nightshift lab heal disk_pressure_tenant web-osl-1')
    .action(async (fault: FaultName | undefined, target: string | undefined, options: { json?: boolean }) => {
      const healed = await connectLab().heal(fault, target)
      if (options.json) return printJson({ healed })
      printNote(healed === 0 ? 'Nothing was broken.' : `Healed ${healed} ${healed === 1 ? 'fault' : 'faults'}.`)
    })
}

export function addStatusCommand(parent: Command): void {
  parent
    .command('status')
    .description('what is broken now, and which writes truly ran')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab status --json')
    .action(async (options: { json?: boolean }) => {
      const lab = connectLab()
      const [broken, effects] = await Promise.all([lab.faults(), lab.effects()])
      if (options.json) return printJson({ faults: broken, effects })
      if (broken.length === 0) print('Nothing was broken since the last heal.')
      else {
        const rows = broken.map((each) => [each.fault, inert(each.on), formatSpan(Date.now() - Date.parse(each.at))])
        print(formatTable(['FAULT', 'ON', 'AGO'], rows, 1))
      }
      if (effects.length === 0) return
      const rows = effects.map((each) => [String(each.runs), each.status, inert(`${each.request}: ${each.detail}`)])
      print(`\n${formatTable(['RUNS', 'STATUS', 'WRITE'], rows, 2)}`)
    })
}
