import type { PlacementProblem } from '../../domain/placement.ts'
import { CommandFailed } from '../exit-code.ts'

export type Changes = { kill: string[]; drain: string[] }

/**
 * The same cluster after these hosts have died or are to be emptied, with the plan asked for that this takes. What somebody had
 * switched off on a host that dies stays off. Ends the command for a name that is no host of it.
 */
export function applyChanges(problem: PlacementProblem, { kill, drain }: Changes): PlacementProblem {
  const known = new Set(problem.hosts.map(({ name }) => name))
  for (const name of [...kill, ...drain])
    if (!known.has(name)) throw new CommandFailed('usage', `There is no host ${name} in the file.`)
  const killed = new Set(kill)
  const drained = new Set(drain.filter((name) => !killed.has(name)))
  return {
    ...problem,
    intent: drained.size > 0 || (problem.intent === 'drain' && problem.hostIds.length > 0) ? 'drain' : 'recover',
    hostIds: [...new Set([...(problem.intent === 'rebalance' ? [] : problem.hostIds), ...killed, ...drained])],
    hosts: problem.hosts.map((host) =>
      killed.has(host.name)
        ? { ...host, state: 'dead' }
        : drained.has(host.name)
          ? { ...host, state: 'draining' }
          : host,
    ),
    vms: problem.vms.map((vm) => {
      if (vm.host === null || !killed.has(vm.host)) return vm
      // Never placed is what nobody starts unasked.
      return vm.running || problem.vmIds !== null ? { ...vm, running: false } : { ...vm, host: null }
    }),
  }
}
