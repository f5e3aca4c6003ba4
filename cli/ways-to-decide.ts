import type { Run } from '../start/run-file.ts'
import type { AnApproval } from './core.ts'
import { defaultPlace, temporalHere } from './temporal-here.ts'
import { paint } from './terminal.ts'
import { command } from './where.ts'
import { updateCommand } from './workflow-update.ts'

/** The doors through which a person can decide this approval, each ready to be used. */
export function waysToDecide(approval: AnApproval, run: Run, program: string): string {
  const id = approval.id
  const token = `$(${command(`approvals token ${id} approve`)} 2>/dev/null)`
  const input = `"{\\"decision\\":\\"approve\\",\\"token\\":\\"${token}\\"}"`
  const temporal = temporalHere(run) ?? defaultPlace
  return [
    paint('bold', 'Four ways to decide, all of them judged by the same code:'),
    '',
    '  1. In the browser, signed in by the link above:',
    `     ${run.url}/approvals/${id}`,
    '',
    '  2. In another terminal:',
    `     ${command(`approvals approve ${id}`)}`,
    `     ${command(`approvals deny ${id} --reason "why not"`)}`,
    '',
    '  3. Over the API:',
    `     POST ${run.url}/api/v1/approvals/${id}/token { "decision": … }, then …/decision`,
    '',
    '  4. Through Temporal:',
    updateCommand(program, temporal, approval, input).replace(/^/gm, '     '),
  ].join('\n')
}
