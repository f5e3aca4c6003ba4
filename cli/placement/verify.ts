import type { Command } from 'commander'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { many, names } from '../../domain/told-plan.ts'
import { boundOf, holds, overfullIn } from '../../placement/certificate.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { paint, print, printJson } from '../terminal.ts'
import { readPlan, readProblem } from './read-file.ts'

export function addVerifyCommand(parent: Command): void {
  parent
    .command('verify')
    .description('replay a plan step by step against a problem, and check its certificate, without a solver')
    .argument('<problem>', 'hosts and VMs as YAML or JSON; - for stdin')
    .argument('<plan>', 'a plan, as --out writes it')
    .option('--json', 'what was found as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan cluster.yaml --out plan.json\n  nightshift placement verify cluster.yaml plan.json\n\nExits with 11 when the plan or its certificate does not hold.',
    )
    .action(async (file: string, planFile: string, options: { json?: boolean }) => {
      if (file === '-' && planFile === '-') throw new CommandFailed('usage', 'Only one of the two can be stdin.')
      const problem = await readProblem(file)
      const plan = await readPlan(planFile)
      const replayed = verifyPlan(problem, plan)
      const { proof } = plan
      const certificate =
        proof.kind !== 'certificate' ? null : boundOf(problem, proof) >= plan.lowerBound && holds(problem, proof)
      if (options.json) printJson({ ...replayed, certificate })
      else {
        print(describeReplay(plan, replayed))
        print(describeCertificate(problem, plan, certificate))
      }
      if (!replayed.ok || certificate === false) throw new CommandFailed('broken', '')
    })
}

function describeReplay({ state, steps }: Plan, replayed: ReturnType<typeof verifyPlan>): string {
  if (!replayed.ok) {
    const where = replayed.step === 0 ? '' : `step ${replayed.step}: `
    return `${paint('red', 'NO')}  the plan: ${where}${inert(replayed.reason)}`
  }
  if (state === 'infeasible')
    return `${paint('dim', '--')}  it claims that there is no plan, which cannot be checked here`
  if (state === 'not_found') return `${paint('dim', '--')}  no plan was found, so there is none to replay`
  return `${paint('green', 'OK')}  the plan: ${many(steps.length, 'step')}, each can begin when its turn comes`
}

function describeCertificate(
  problem: PlacementProblem,
  { lowerBound, proof }: Plan,
  certificate: boolean | null,
): string {
  if (certificate === true)
    return `${paint('green', 'OK')}  the certificate: no plan for all needs fewer than ${many(lowerBound, 'migration')}`
  const full = certificate === false ? overfullIn(problem) : []
  if (full.length > 0)
    return `${paint('red', 'NO')}  the certificate proves nothing: over capacity already: ${inert(names(full))}`
  if (certificate === false)
    return `${paint('red', 'NO')}  the certificate does not show that ${many(lowerBound, 'migration')} are needed`
  if (lowerBound === 0) return `${paint('dim', '--')}  no bound is claimed, so nothing is to be proved`
  const by = `that it takes ${many(lowerBound, 'migration')} is known by "${proof.kind}"`
  return `${paint('dim', '--')}  no certificate: ${by}, which cannot be checked here`
}
