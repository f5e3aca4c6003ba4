import type { ModelList } from '../../domain/model-list.ts'
import { warnOfModel } from '../../domain/passport.ts'
import { settingRevision } from '../../domain/setting-row.ts'
import { noModel } from '../../domain/setting-value.ts'
import type { ApiClient } from '../api.ts'
import { getStoredSetting, toSettingPath } from '../config/transfer.ts'
import type { CliCommand, ConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { listAll } from '../read-api.ts'
import { inert, printJson, printNote } from '../ui/terminal.ts'

type Options = ConnectionOptions & { type?: string; reason?: string }

/** `model use` and `model back`: set the model for new runs. */
export function addUseCommands(parent: CliCommand): void {
  parent
    .command('use')
    .description('let runs use a declared model from the next run on: all runs, or runs of one incident type')
    .argument('<name>', 'a name from "model list"; the name default is the model of LLM_BASE_URL')
    .option('--type <type>', 'only incidents of this type')
    .option('--reason <text>', 'reason, recorded in the history')
    .connected(
      '\nExample:\n  nightshift model use small --type replication_lag\n  nightshift model back --type replication_lag',
    )
    .calls(use)
  parent
    .command('back')
    .description('undo the last change of the model that runs use; a second time, the command redoes the change')
    .option('--type <type>', 'only the model of this incident type')
    .option('--reason <text>', 'reason, recorded in the history')
    .connected('\nExample:\n  nightshift model back\n  nightshift model back --type replication_lag')
    .calls(back)
}

function keysOf({ type }: Options): string[] {
  return type === undefined ? ['agent.model.leader', 'agent.model.follower'] : [`${ofType}${type}`]
}

async function use(api: ApiClient, name: string, options: Options): Promise<void> {
  const { items, routes } = (await api.get('/api/v1/models')) as ModelList
  const declared = items.find((item) => item.name === name)
  if (!declared) {
    const names = items.map((item) => inert(item.name)).join(', ')
    throw new CommandFailed(
      'notFound',
      `No model is declared as ${inert(name)}${names ? `; there is ${names}` : ''}. Declare it in LLM_SERVERS_FILE.`,
    )
  }
  const changes = []
  for (const key of keysOf(options)) changes.push(await set(api, key, name, options.reason ?? `model use ${name}`))
  if (options.json) return printJson(changes)
  for (const change of changes) printNote(inWords(change))
  if (options.type === undefined) for (const line of apartFrom(name, routes)) printNote(line)
  const warning = warnOfModel(declared.model, declared.passport)
  if (warning) printNote(inert(warning))
}

const ofType = 'agent.model.type.'

/** Lists the types that have a separate model setting, which their runs keep. */
function apartFrom(name: string, routes: ModelList['routes']): string[] {
  return routes
    .filter(({ key, model }) => key.startsWith(ofType) && model !== name)
    .map(({ key, model }) => {
      const type = inert(key.slice(ofType.length))
      return `Runs of ${type} stay with ${inert(model)}. To change them too: nightshift model use ${inert(name)} --type ${type}`
    })
}

async function back(api: ApiClient, options: Options): Promise<void> {
  const changes = []
  const reason = options.reason ?? 'model back'
  for (const key of keysOf(options)) {
    const before = await valueBefore(api, key)
    if (before !== null) changes.push(await set(api, key, before, reason))
  }
  if (changes.length === 0) {
    throw new CommandFailed(
      'notFound',
      `${keysOf(options).join(' and ')} ${options.type ? 'was' : 'were'} never set, so there is no change to undo.`,
    )
  }
  if (options.json) return printJson(changes)
  for (const change of changes) printNote(inWords(change))
}

/** Returns the value before the last change. Null for a setting that was never changed. */
async function valueBefore(api: ApiClient, key: string): Promise<string | null> {
  const revisions = await listAll(api, `${toSettingPath(key)}/revisions?limit=1`, settingRevision.loose(), 1)
  const [last] = revisions
  return last ? (last.oldValue ?? noModel) : null
}

type Change = { key: string; from: string | null; to: string }

/**
 * Sets the value unless another person changes the setting at the same time, which throws
 * ApiProblem with status 412.
 */
async function set(api: ApiClient, key: string, value: string, reason: string): Promise<Change> {
  const stored = await getStoredSetting(api, key)
  await api.put(toSettingPath(key), { value, reason }, { 'if-match': `"${stored?.version ?? 0}"` })
  return { key, from: stored ? String(stored.value) : null, to: value }
}

function inWords({ key, from, to }: Change): string {
  const name = (model: string | null) => (model === null || model === noModel ? 'not set' : inert(model))
  return `${key}: ${name(from)} → ${name(to)}, from the next run on.`
}
