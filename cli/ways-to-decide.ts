import type { Run } from '../start/run-file.ts'
import type { ApiApproval } from './core.ts'
import { defaultTemporal, readTemporalSettings } from './temporal-here.ts'
import { paint } from './terminal.ts'
import { commandLine } from './where.ts'
import { formatUpdateCommand } from './workflow-update.ts'

/** The doors through which a person can decide this approval, each ready to be used. */
export function formatWaysToDecide(approval: ApiApproval, run: Run, program: string): string {
  const id = approval.id
  const token = `$(${commandLine(`approvals token ${id} approve`)} 2>/dev/null)`
  const input = `"{\\"decision\\":\\"approve\\",\\"token\\":\\"${token}\\"}"`
  const temporal = readTemporalSettings(run) ?? defaultTemporal
  return [
    paint('bold', 'Four ways to decide, all of them judged by the same code:'),
    '',
    '  1. In the browser, signed in by the link above:',
    `     ${run.url}/approvals/${id}`,
    '',
    '  2. In another terminal:',
    `     ${commandLine(`approvals approve ${id}`)}`,
    `     ${commandLine(`approvals deny ${id} --reason "why not"`)}`,
    '',
    '  3. Over the API:',
    `     POST ${run.url}/api/v1/approvals/${id}/token { "decision": … }, then …/decision`,
    '',
    '  4. Through Temporal:',
    formatUpdateCommand(program, temporal, approval, input).replace(/^/gm, '     '),
  ].join('\n')
}
