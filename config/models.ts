import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { url } from './agent.ts'

/** The models that a site declares besides the one of LLM_BASE_URL, and which stands in for which. */

export const defaultModel = 'default'

/** A model at a server, with what its requests carry. The key stays in the worker that reads this. */
export type DeclaredModel = {
  name: string
  baseUrl: string
  model: string
  apiKey: string
  /** Names of those that are asked while this one cannot be, in order. */
  fallbacks: string[]
  protocol: ModelProtocol
}

/** How a model says its calls. `auto`: natively, unless its server is known to take no tools. */
export type ModelProtocol = z.infer<typeof protocolSetting>
const protocolSetting = z.enum(['auto', 'native', 'json'])

export const modelName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,39}$/, 'takes 1 to 40 of a-z, 0-9, "_", "." and "-"')

const plainUrl = url.refine((text) => {
  const { username, password, search } = new URL(text)
  return username === '' && password === '' && search === ''
}, 'holds a user, a password or a query: name the key by keyFile or keyVariable')

const fallbacks = z.array(modelName).max(8).default([])
const entry = z
  .strictObject({
    name: modelName,
    baseUrl: plainUrl,
    model: z.string().min(1).max(200),
    /** The key is in this file, or in this variable of the worker's environment; neither: none is sent. */
    keyFile: z.string().min(1).optional(),
    keyVariable: z
      .string()
      .regex(/^[A-Z_][A-Z0-9_]*$/, 'is no name of a variable')
      .optional(),
    fallbacks,
    /** Without it LLM_PROTOCOL. */
    protocol: protocolSetting.optional(),
  })
  .refine(({ keyFile, keyVariable }) => !keyFile || !keyVariable, 'has keyFile and keyVariable: keep one')

const serversFile = z.strictObject({
  /** Of the model of LLM_BASE_URL and LLM_MODEL. */
  default: z.strictObject({ fallbacks, protocol: protocolSetting.optional() }).optional(),
  models: z.array(entry).max(50).default([]),
})

type Given = { baseUrl: string; model: string; apiKey: string; protocol: 'native' | 'json'; file: string | undefined }

/**
 * All models there are, the default first. `problems` has a line for each fault of the file, with its remedy; where there is one, the
 * default alone is answered.
 */
export function readModels(
  given: Given,
  environment: Record<string, string | undefined>,
): { models: DeclaredModel[]; problems: string[] } {
  const { baseUrl, model, apiKey, protocol, file } = given
  const alone: DeclaredModel = { name: defaultModel, baseUrl, model, apiKey, protocol, fallbacks: [] }
  if (file === undefined) return { models: [alone], problems: [] }
  const read = readJson(file)
  if ('problem' in read) return { models: [alone], problems: [read.problem] }
  const parsed = serversFile.safeParse(read.value)
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`)
    return { models: [alone], problems: problems.map((each) => `LLM_SERVERS_FILE ${file}: ${each}`) }
  }
  const problems: string[] = []
  const declared = parsed.data.models.map(({ keyFile, keyVariable, ...rest }): DeclaredModel => {
    const found = keyOf(keyFile, keyVariable, environment)
    if ('problem' in found) problems.push(`${rest.name}: ${found.problem}`)
    return { ...rest, protocol: rest.protocol ?? protocol, apiKey: 'key' in found ? found.key : '' }
  })
  const own = parsed.data.default
  const models = [{ ...alone, fallbacks: own?.fallbacks ?? [], protocol: own?.protocol ?? protocol }, ...declared]
  const names = models.map(({ name }) => name)
  problems.push(
    ...names.filter((name, index) => names.indexOf(name) < index).map((name) => `${name} is declared twice`),
    ...models.flatMap((each) =>
      each.fallbacks
        .filter((name) => name === each.name || !names.includes(name))
        .map((name) => `${each.name}: its fallback ${name} is ${name === each.name ? 'itself' : 'declared nowhere'}`),
    ),
    ...models.flatMap((each) => protocolFaults(each, models)),
  )
  if (problems.length === 0) return { models, problems }
  return { models: [alone], problems: problems.map((each) => `LLM_SERVERS_FILE ${file}: ${each}`) }
}

/** A run keeps the protocol that it began with: tools cannot become words in the middle. The other way round any model can be asked. */
function protocolFaults({ name, protocol, fallbacks: own }: DeclaredModel, models: readonly DeclaredModel[]): string[] {
  if (protocol !== 'native') return []
  const asWords = models.filter((each) => own.includes(each.name) && each.protocol === 'json')
  return asWords.map(
    (each) =>
      `${name}: its fallback ${each.name} is asked by json, and a run of native keeps native: give both one protocol`,
  )
}

function readJson(file: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(readFileSync(file, 'utf8')) }
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read'
    return { problem: `LLM_SERVERS_FILE names ${file}, which ${why}` }
  }
}

function keyOf(
  file: string | undefined,
  variable: string | undefined,
  environment: Record<string, string | undefined>,
): { key: string } | { problem: string } {
  if (variable !== undefined) {
    const key = environment[variable]
    return key ? { key } : { problem: `keyVariable names ${variable}, which is not set` }
  }
  if (file === undefined) return { key: '' }
  try {
    return { key: readFileSync(file, 'utf8').trim() }
  } catch {
    return { problem: `keyFile names ${file}, which cannot be read` }
  }
}
