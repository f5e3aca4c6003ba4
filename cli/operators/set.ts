import type { Command } from 'commander'
import { personRoles } from '../../domain/operator.ts'
import { risks } from '../../domain/tool.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { parseOneOf } from '../one-of.ts'
import { ApiProblem } from '../problem.ts'
import { printJson, printNote } from '../terminal.ts'
import { apiOperator } from './an-operator.ts'

type SetOptions = ConnectionOptions & {
  role?: string
  maxRisk?: string
  type: string[]
  allTypes?: boolean
  disable?: boolean
  enable?: boolean
  reason?: string
  /** False: `--no-slack`. */
  slack?: string | false
}

export function addSetCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('set')
      .description('make a person, or change what they may; what is not named stays as it is')
      .argument('<name>', 'one word, as rows will show it')
      .option('--role <role>', `one of ${personRoles.join(', ')}`, parseOneOf(personRoles))
      .option('--max-risk <risk>', `decides about risks up to: ${risks.join(', ')}`, parseOneOf(risks))
      .option('--type <type>', 'decides about incidents of this type alone; again for more', collectValues, [])
      .option('--all-types', 'decides about incidents of all types')
      .option('--disable', 'comes in nowhere from now on')
      .option('--enable', 'may come in again')
      .option('--slack <member>', 'decides by buttons in Slack as this member')
      .option('--no-slack', 'is nobody there any more')
      .option('--reason <text>', 'why, for the audit'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift operators set anna --role approver --max-risk high --type disk_pressure\n  nightshift operators set anna --slack U012AB3CD\n  nightshift operators set anna --disable',
    )
    .action(async (name: string, options: SetOptions) => {
      const { api } = connect(options)
      const path = `/api/v1/operators/${encodeURIComponent(name)}`
      const before = await api.get(path).then(apiOperator.parse, (error: unknown) => {
        if (error instanceof ApiProblem && error.problem.status === 404) return null
        throw error
      })
      const role = options.role ?? before?.role
      if (!role) throw new CommandFailed('usage', `There is no operator ${name} yet: say --role.`)
      const answer = await api.put(path, {
        role,
        maxRisk: options.maxRisk ?? before?.maxRisk ?? 'critical',
        incidentTypes: options.allTypes
          ? null
          : options.type.length > 0
            ? options.type
            : (before?.incidentTypes ?? null),
        disabled: options.disable ? true : options.enable ? false : Boolean(before?.disabledAt),
        reason: options.reason ?? null,
        ...(options.slack !== undefined && { slackUserId: options.slack || null }),
      })
      if (options.json) return printJson(answer)
      printNote(
        before
          ? `${inert(name)} is changed.`
          : `${inert(name)} is known. Next: nightshift tokens create … --operator ${inert(name)}`,
      )
    })
}

function collectValues(value: string, before: string[]): string[] {
  return [...before, value]
}
