import { z } from 'zod'
import { exampleOfRight } from '../domain/decision-right.ts'
import { operator } from '../domain/operator.ts'
import { personRoles } from '../domain/permissions.ts'
import { risks } from '../domain/tool.ts'
import { ApiProblem } from './api.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { addEraseCommand } from './erase.ts'
import { CommandFailed } from './exit-codes.ts'
import { listAll } from './read-api.ts'
import { printList } from './ui/table.ts'
import { collectValues, inert, parseOneOf, printJson, printNote } from './ui/terminal.ts'

// Accepts further fields, roles and risks, so that those of a newer API still appear in --json.
const listedOperator = operator
  .pick({ name: true, incidentTypes: true, rights: true, disabledAt: true })
  .extend({ role: z.string(), maxRisk: z.string() })
  .loose()

export function addOperatorsCommand(program: CliCommand): void {
  const parent = program
    .command('operators')
    .description('users, and what each may decide')
    .addHelpText('after', '\nExample:\n  nightshift operators list\n  nightshift operators set anna --role approver')
  addListCommand(parent)
  addSetCommand(parent)
  addEraseCommand(parent)
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('users by name')
    .connected('\nExample:\n  nightshift operators list')
    .calls(async (api, options: ConnectionOptions) => {
      const people = await listAll(api, '/api/v1/operators?limit=200', listedOperator)
      printList(options, people, null, {
        NAME: ({ name }) => inert(name),
        ROLE: ({ role, disabledAt }) => (disabledAt ? 'disabled' : inert(role)),
        'RISKS UP TO': ({ maxRisk }) => inert(maxRisk),
        'INCIDENT TYPES': ({ incidentTypes }) =>
          inert(incidentTypes === null ? 'all' : incidentTypes.join(', ') || 'none'),
        'FURTHER RIGHTS': ({ rights }) => inert(rights.join('; ')),
      })
    })
}

type SetOptions = ConnectionOptions & {
  role?: string
  maxRisk?: string
  type: string[]
  right: string[]
  /** False with `--no-rights`. */
  rights: boolean
  allTypes?: boolean
  disable?: boolean
  enable?: boolean
  reason?: string
  /** False with `--no-slack` and `--no-pagerduty`. */
  slack?: string | false
  pagerduty?: string | false
}

function addSetCommand(parent: CliCommand): void {
  parent
    .command('set')
    .description('add a person, or change what they may do; options that you leave out stay as they are')
    .argument('<name>', 'one word, shown in the log')
    .option('--role <role>', `one of ${personRoles.join(', ')}`, parseOneOf(personRoles))
    .option(
      '--max-risk <risk>',
      `highest risk of the actions that this person may decide about: ${risks.join(', ')}`,
      parseOneOf(risks),
    )
    .option('--type <type>', 'decides about incidents of this type only; repeatable', collectValues, [])
    .option('--all-types', 'decides about incidents of all types')
    .option(
      '--right <right>',
      `a further right beyond these limits, as "${exampleOfRight}"; repeatable; replaces all earlier further rights`,
      collectValues,
      [],
    )
    .option('--no-rights', 'loses all rights beyond these limits')
    .option('--disable', 'may no longer sign in')
    .option('--enable', 'may sign in again')
    .option('--slack <member>', 'decides by buttons in Slack as this member')
    .option('--no-slack', 'is no longer linked to a Slack member')
    .option('--pagerduty <user>', 'takes the incidents that this user of PagerDuty acknowledges')
    .option('--no-pagerduty', 'is no longer linked to a PagerDuty user')
    .option('--reason <text>', 'reason, recorded in the audit log')
    .connected(
      '\nExample:\n  nightshift operators set anna --role approver --max-risk high --type disk_pressure\n  nightshift operators set anna --max-risk none --right "critical database:* until:2026-12-06"\n  nightshift operators set anna --slack U012AB3CD\n  nightshift operators set anna --disable',
    )
    .calls(async (api, name: string, options: SetOptions) => {
      const path = `/api/v1/operators/${encodeURIComponent(name)}`
      const before = await api.get(path).then(listedOperator.parse, (error: unknown) => {
        if (error instanceof ApiProblem && error.problem.status === 404) return null
        throw error
      })
      const role = options.role ?? before?.role
      if (!role) throw new CommandFailed('usage', `There is no operator ${name} yet: give --role.`)
      const answer = await api.put(path, {
        role,
        maxRisk: options.maxRisk ?? before?.maxRisk ?? 'critical',
        incidentTypes: options.allTypes
          ? null
          : options.type.length > 0
            ? options.type
            : (before?.incidentTypes ?? null),
        ...((options.right.length > 0 || !options.rights) && { rights: options.right }),
        disabled: options.disable ? true : options.enable ? false : Boolean(before?.disabledAt),
        reason: options.reason ?? null,
        ...(options.slack !== undefined && { slackUserId: options.slack || null }),
        ...(options.pagerduty !== undefined && { pagerdutyUserId: options.pagerduty || null }),
      })
      if (options.json) return printJson(answer)
      printNote(
        before
          ? `${inert(name)} is changed.`
          : `${inert(name)} is added. Next: nightshift tokens create … --operator ${inert(name)}`,
      )
    })
}
