import type { Command } from 'commander'
import { formatSpan } from '../../domain/format.ts'
import { type FaultName, faultName } from '../../lab/state.ts'
import { parseLabName, parseSeconds } from '../ui/options.ts'
import { formatTable } from '../ui/table.ts'
import { print, printJson, printNote } from '../ui/terminal.ts'
import { inert } from '../ui/text.ts'
import { faultGuide, type ScenarioName, scenarioNames } from './endings.ts'
import { addOracleCommand, connectLab, playScenario } from './scenario.ts'

type Options = { scenario?: ScenarioName; target?: string; timeout?: number; json?: boolean }

export function addLabCommand(program: Command): void {
  const parent = program
    .command('lab')
    .description('a platform of real processes to break things in')
    .enablePositionalOptions()
    .option(
      '--scenario <name>',
      'break this, follow the incident to its end, ask the oracle',
      parseLabName(scenarioNames),
    )
    .option('--target <target>', 'with --scenario: what to break')
    .option('--timeout <seconds>', 'with --scenario: give up after this long', parseSeconds)
    .option('--json', 'with --scenario: one JSON document at the end')
    .addHelpText(
      'after',
      '\nExample:\n  npm run lab -- --scenario service_down\n  nightshift lab break host_down host-osl-1',
    )
    .action(async ({ scenario, ...options }: Options, self: Command) => {
      if (!scenario) return self.help({ error: true })
      await playScenario({ scenario, ...options })
    })
  addFaultsCommand(parent)
  addBreakCommand(parent)
  addHealCommand(parent)
  addOracleCommand(parent)
  addStatusCommand(parent)
}

function addFaultsCommand(parent: Command): void {
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

function addBreakCommand(parent: Command): void {
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

function addHealCommand(parent: Command): void {
  parent
    .command('heal')
    .description('undo all faults and start what is down; or only one fault')
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

function addStatusCommand(parent: Command): void {
  parent
    .command('status')
    .description('what is broken now, and which writes really ran')
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
