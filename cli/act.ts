import { z } from 'zod'
import { type VmAction, vmActions } from '../domain/platform.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { confirm, inert, isAskable, paint, printJson, printNote } from './ui/terminal.ts'

/**
 * `nightshift act`: actions that a person makes on the platform directly, judged like the agent's
 * calls.
 */
export function addActCommand(program: CliCommand): void {
  const parent = program
    .command('act')
    .description(
      'run one action on the platform yourself; from medium risk on, a person who may decide must approve the action',
    )
    .addHelpText('after', '\nExample:\n  nightshift act stop-vm vm-118 --reason "it fills the pool"')
  for (const action of vmActions)
    addAct(parent, `${action}-vm <id>`, vmWords[action], 'vm-118 --reason "it does not answer"', prepareVm(action))
  const converged = 're-apply the desired state to every node of a shard'
  addAct(parent, 'converge <shard>', converged, 'web-osl-1 --reason "a setting has drifted"', prepareConvergence)
  const carried = 'carry out a stored placement plan'
  addAct(parent, 'execute-plan <id>', carried, 'prp_01k… --reason "host-osl-2 is down"', preparePlan)
}

type PrepareAct = (api: ApiClient, id: string) => Promise<PreparedAct>

function addAct(parent: CliCommand, named: string, about: string, example: string, prepare: PrepareAct): void {
  const command = parent.command(named).description(about)
  declareAct(command, `nightshift act ${command.name()} ${example}`).calls(
    async (api, id: string, options: ActOptions) => await carryOut(api, await prepare(api, id), options),
  )
}

export type ActOptions = ConnectionOptions & { reason: string; alone?: true; yes?: true }

/**
 * An action as the person saw it in the dry run: the request, and the state on which it depends.
 */
type PreparedAct = {
  path: string
  body?: object
  summary: string
  told?: readonly string[] | undefined
  ifMatch?: string
}

/** Adds the options of every action: `reason`, `alone`, `yes`, and the flags for the API. */
export function declareAct(command: CliCommand, example: string, reason?: 'optional'): CliCommand {
  const why = ['--reason <text>', 'reason, recorded in the log'] as const
  return (reason ? command.option(...why) : command.requiredOption(...why))
    .option(
      '--alone',
      'do a critical write without a second person (admins only); other people are paged, and one of them must review the write',
    )
    .option('--yes', 'skip the confirmation; without a terminal the command asks for none')
    .connected(`\nExample:\n  ${example}`)
}

const directAnswer = z.looseObject({
  detail: z.string(),
  incidentId: z.string().optional(),
  approvalId: z.string().nullish(),
  status: z.enum(['done', 'awaiting_approval', 'under_way']).optional(),
})

/**
 * Shows the effects of an action, asks for confirmation at a terminal, sends the action, and prints
 * its outcome, or that it waits for approval.
 */
export async function carryOut(api: ApiClient, act: PreparedAct, options: ActOptions): Promise<void> {
  const { reason, alone, yes, json } = options
  const { path, summary, told = [], ifMatch } = act
  if (!json) printNote([summary, ...told.map((line) => `  ${line}`)].map((line) => inert(line)).join('\n'))
  if (
    !yes &&
    !json &&
    isAskable() &&
    !(await confirm(alone ? '\nRun this action without a second person?' : '\nRun this action?'))
  )
    throw new CommandFailed('error', 'Nothing was done.')
  const body = { ...act.body, reason, ...(alone && { alone }) }
  const answer = directAnswer.parse(await api.post(path, body, ifMatch === undefined ? {} : { 'if-match': ifMatch }))
  if (json) printJson(answer)
  else printNote(formatOutcome(answer, alone === true))
}

function formatOutcome(
  { detail, incidentId, approvalId, status }: z.infer<typeof directAnswer>,
  alone: boolean,
): string {
  const id = inert(incidentId ?? '')
  if (status === 'awaiting_approval') {
    const approve = commandLine(`approvals approve ${inert(approvalId ?? '')}`)
    return `${paint('yellow', '…')} Nothing was done yet. ${id} waits for a person who may decide it. To approve: "${approve}".`
  }
  if (status === 'under_way')
    return `${paint('yellow', '…')} ${inert(detail)} Follow it with "${commandLine(`incidents watch ${id}`)}".`
  const done = `${paint('green', '✔')} ${inert(detail)}${id && ` (${id})`}`
  if (!alone) return done
  return `${done}\n  You did this write without a second person. Another person must review the write with "${commandLine(`incidents review ${id}`)}".`
}

const vmWords: Record<VmAction, string> = {
  start: 'start a VM on the host it is on',
  stop: 'stop a VM and leave it stopped',
  restart: 'stop a VM and start it again on the same host',
}

const preparedVm = z.looseObject({
  stateFingerprint: z.string(),
  dryRun: z.looseObject({
    summary: z.string(),
    details: z.looseObject({ rehearsal: z.looseObject({ told: z.array(z.string()) }).optional() }),
  }),
})

const prepareVm =
  (action: VmAction): PrepareAct =>
  async (api, id) => {
    const path = `/api/v1/vms/${encodeURIComponent(id)}/${action}`
    const { stateFingerprint, dryRun } = preparedVm.parse(await api.get(`${path}?dry_run=true`))
    return { path, summary: dryRun.summary, told: dryRun.details.rehearsal?.told, ifMatch: stateFingerprint }
  }

const convergence = z.looseObject({
  detail: z.string(),
  nodes: z.array(z.looseObject({ id: z.string(), changes: z.array(z.string()) })),
})

async function prepareConvergence(api: ApiClient, shard: string): Promise<PreparedAct> {
  const path = `/api/v1/shards/${encodeURIComponent(shard)}/converge`
  const { detail, nodes } = convergence.parse(await api.get(`${path}?dry_run=true`))
  const told = nodes.flatMap(({ id, changes }) => changes.map((change) => `${id}: ${change}`))
  return { path, summary: `Converge ${shard}: ${detail}`, told }
}

const storedPlan = z.looseObject({
  currentFingerprint: z.string(),
  unfitBecause: z.string().nullable(),
  steps: z.array(z.looseObject({ action: z.string(), vm: z.string(), to: z.string() })),
})

async function preparePlan(api: ApiClient, id: string): Promise<PreparedAct> {
  const path = `/api/v1/placement/proposals/${encodeURIComponent(id)}`
  const { currentFingerprint, unfitBecause, steps } = storedPlan.parse(await api.get(path))
  if (unfitBecause !== null) throw new CommandFailed('conflict', `${inert(id)} no longer fits: ${inert(unfitBecause)}`)
  const told = steps.map(({ action, vm, to }) => `${action} ${vm} → ${to}`)
  const summary = `Carry out ${id}, ${steps.length} steps`
  return { path: `${path}/execute`, summary, told, ifMatch: currentFingerprint }
}
