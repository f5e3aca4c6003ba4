import type { SeenAbilities, ServedModel } from '../../domain/chat.ts'
import { hideKey } from '../../domain/hidden-credentials.ts'
import type { AddressPolicy } from '../address.ts'
import { request } from '../http.ts'

type Where = { baseUrl: string; apiKey: string; model: string; allow?: AddressPolicy }
type Json = Record<string, unknown>

const patienceMs = 3_000
/** Milliseconds to wait for a model to load, because reading weights from a disk takes time. */
const loadPatienceMs = 120_000
const largestList = 8_000_000
/** Ollama's context window if neither model nor environment sets one and memory is small. */
const ollamaDefault = 4_096

/**
 * Asks the server for the model's context window: `/v1/models` (vLLM, OpenRouter, SGLang, Mistral,
 * Groq), `/props` of llama.cpp, `/api/ps` and `/api/show` of Ollama. Null if the server cannot be
 * reached; a null window if the server reports none. `baseUrl` ends with its version, as from
 * `baseUrlOf`.
 */
export async function readServedModel(where: Where): Promise<ServedModel | null> {
  const listed = await ask(where, `${where.baseUrl}/models`)
  if (listed === 'unreached') return null
  const models = (Array.isArray(listed?.data) ? listed.data : []).filter(isJson)
  const entry = models.find(({ id }) => id === where.model) ?? onlyOne(models)
  const parent = models.find(({ id }) => id === entry?.parent)
  const owner = String(entry?.owned_by ?? '')
  if (owner === 'llamacpp' || isJson(entry?.meta)) return await llamaCpp(where, entry ?? {})
  const stated = windowOf(entry) ?? windowOf(parent)
  if (stated) return served({ ...stated, owner, root: entry?.root ?? null }, abilitiesIn(owner, entry))
  const isOllama = owner === 'library' || (!isOpenAi(owner) && (await isOllamaAt(where)))
  return isOllama
    ? await ollama(where)
    : served({ tokens: null, source: null, owner, root: entry?.root ?? null }, abilitiesIn(owner, entry))
}

/**
 * Finds abilities of the server. vLLM and SGLang enforce grammars; OpenRouter lists the parameters
 * that a model's providers support.
 */
function abilitiesIn(owner: string, entry: Json | undefined): SeenAbilities {
  const listed = entry?.supported_parameters
  if (Array.isArray(listed)) {
    const has = (name: string) => (listed.includes(name) ? 'yes' : 'no')
    return { tools: has('tools'), schema: has('structured_outputs') }
  }
  return owner === 'vllm' || owner === 'sglang' ? { grammar: 'yes', schema: 'yes' } : {}
}

function served(
  found: { tokens: number | null; source: string | null; owner: string; root: unknown },
  abilities: SeenAbilities,
): ServedModel {
  const { tokens, source } = found
  return {
    windowTokens: tokens,
    source,
    identity: JSON.stringify([found.owner, found.root, tokens]),
    cutsSilently: false,
    isProvisional: false,
    abilities,
  }
}

const fields = ['max_model_len', 'context_length', 'context_window', 'max_context_length'] as const

/**
 * Returns the smallest window in an entry, because OpenRouter may report a larger window for the
 * model than for the provider that serves it.
 */
function windowOf(entry: Json | undefined): { tokens: number; source: string } | null {
  if (!entry) return null
  const provider = isJson(entry.top_provider) ? entry.top_provider : {}
  const found = fields.flatMap((field) =>
    [entry[field], provider[field]].flatMap((value) => {
      const tokens = positive(value)
      return tokens === null ? [] : [{ tokens, source: `${field} of /v1/models` }]
    }),
  )
  return found.toSorted((a, b) => a.tokens - b.tokens)[0] ?? null
}

/**
 * Reads the window of llama.cpp. `n_ctx` is the window of a slot. `n_ctx_train` is the window of
 * the model's training, which may be far larger.
 */
async function llamaCpp(where: Where, entry: Json): Promise<ServedModel> {
  const root = rootOf(where.baseUrl)
  const query = `?model=${encodeURIComponent(where.model)}&autoload=false`
  const props = (await ask(where, `${root}/props${query}`)) || null
  const settings =
    props !== 'unreached' && isJson(props?.default_generation_settings) ? props.default_generation_settings : {}
  const tokens = positive(settings.n_ctx)
  const meta = isJson(entry.meta) ? entry.meta : {}
  const own = tokens ?? positive(meta.n_ctx)
  const source = own === null ? null : tokens === null ? 'n_ctx of /v1/models' : 'n_ctx of /props'
  const caps = props !== 'unreached' && isJson(props?.chat_template_caps) ? props.chat_template_caps : {}
  return served(
    { tokens: own, source, owner: 'llamacpp', root: [meta.n_params ?? null, meta.size ?? null] },
    {
      schema: 'yes',
      grammar: 'yes',
      ...yesOrNo('tools', caps.supports_tools),
      ...yesOrNo('parallel', caps.supports_parallel_tool_calls),
    },
  )
}

/**
 * Reads the window of Ollama, which reports it for loaded models. Loads a model that is not loaded
 * and has no `num_ctx`, because only then does Ollama decide, by OLLAMA_CONTEXT_LENGTH and memory.
 */
async function ollama(where: Where): Promise<ServedModel> {
  const root = rootOf(where.baseUrl)
  const model = JSON.stringify({ model: where.model })
  const shown = await ask(where, `${root}/api/show`, model)
  const show = shown !== 'unreached' && shown ? shown : {}
  const set = positive(Number(/^num_ctx\s+(\d+)/m.exec(String(show.parameters ?? ''))?.[1]))
  let loaded = await loadedWindow(where, root)
  if (loaded === null && set === null) {
    await ask(where, `${root}/api/generate`, model, loadPatienceMs)
    loaded = await loadedWindow(where, root)
  }
  const info = isJson(show.model_info) ? show.model_info : {}
  const max = positive(info[`${String(info['general.architecture'])}.context_length`])
  const wished = loaded ?? set ?? ollamaDefault
  const source = loaded ? 'context_length of /api/ps' : set ? 'num_ctx of /api/show' : "Ollama's default num_ctx"
  return {
    windowTokens: max === null ? wished : Math.min(wished, max),
    source,
    identity: JSON.stringify(['ollama', info['general.parameter_count'] ?? null, show.modified_at ?? null]),
    cutsSilently: true,
    isProvisional: loaded === null,
    abilities: {
      schema: 'yes',
      grammar: 'no',
      ...yesOrNo('tools', Array.isArray(show.capabilities) ? show.capabilities.includes('tools') : undefined),
    },
  }
}

function yesOrNo(name: keyof SeenAbilities, said: unknown): SeenAbilities {
  return typeof said === 'boolean' ? { [name]: said ? 'yes' : 'no' } : {}
}

async function loadedWindow(where: Where, root: string): Promise<number | null> {
  const running = await ask(where, `${root}/api/ps`)
  const models = running !== 'unreached' && Array.isArray(running?.models) ? running.models.filter(isJson) : []
  const names = [where.model, `${where.model}:latest`]
  const own = models.find((each) => names.includes(String(each.name)) || names.includes(String(each.model)))
  return positive(own?.context_length)
}

async function isOllamaAt(where: Where): Promise<boolean> {
  const answer = await ask(where, `${rootOf(where.baseUrl)}/api/version`)
  return answer !== 'unreached' && typeof answer?.version === 'string'
}

/** Requests a body of JSON. Null for any other response. */
async function ask(
  where: Where,
  url: string,
  body?: string,
  timeoutMs = patienceMs,
): Promise<Json | null | 'unreached'> {
  try {
    const answer = await request({
      method: body === undefined ? 'GET' : 'POST',
      url,
      timeoutMs,
      maxBytes: largestList,
      headers: {
        ...(where.apiKey && { authorization: `Bearer ${where.apiKey}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      allow: where.allow ?? 'private',
    })
    if (answer.status !== 200) return null
    const parsed: unknown = hideKey(where.apiKey).value(JSON.parse(Buffer.from(answer.body).toString()))
    return isJson(parsed) ? parsed : null
  } catch (error) {
    return error instanceof SyntaxError ? null : 'unreached'
  }
}

/** Returns the only model of a server, because a server with one model accepts any name for it. */
function onlyOne(models: Json[]): Json | undefined {
  return models.length === 1 ? models[0] : undefined
}

function isOpenAi(owner: string): boolean {
  return /^(openai|system)\b/.test(owner)
}

function rootOf(baseUrl: string): string {
  return baseUrl.replace(/\/v\d+[a-z0-9]*$/, '')
}

function positive(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}

function isJson(value: unknown): value is Json {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
