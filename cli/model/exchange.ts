import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { ModelError } from '../../clients/chat/answer.ts'
import { readServedModel } from '../../clients/chat/window.ts'
import { request } from '../../clients/http.ts'
import { baseUrlOf, createModelClient, type ShapeMemory } from '../../clients/model.ts'
import {
  type ChatMessage,
  type ChatTool,
  type LearnedProfile,
  plainShape,
  type RequestShape,
  type SeenAbilities,
} from '../../domain/chat.ts'
import type { CheckReply } from '../../model/passport/check.ts'
import { answerForm } from '../../model/protocol.ts'
import { CommandFailed } from '../exit-codes.ts'
import { inert } from '../ui/terminal.ts'

export type ModelServer = { baseUrl: string; apiKey: string; model: string; temperature: number }

type Question = {
  messages: ChatMessage[]
  tools: ChatTool[]
  maxTokens: number
  timeoutMs: number
  /** True for the first request: a failure then means that address, key or server is wrong. */
  isFirst: boolean
  /** True if no other request follows. A slow response is then an error. */
  isOnly?: boolean
  /** The remedy in the message that the server no longer responds. */
  remedy: string
}

const maxWaitMs = 10_000
/** Number of failed requests in a row after which a command ends. */
const maxAway = 3

/**
 * Opens the product's client for one server, for commands with many requests. A request without a
 * response returns the reason. Throws CommandFailed for the third lost request in a row, a wrong
 * key or an unknown model.
 */
export function openExchange(server: ModelServer): {
  ask(question: Question): Promise<CheckReply>
  learned(): Promise<LearnedProfile>
} {
  const known: { shape: RequestShape; abilities: SeenAbilities } = { shape: plainShape, abilities: {} }
  const memory: ShapeMemory = {
    recall: async () => known.shape,
    keep: async (_model, shape) => void Object.assign(known, { shape }),
    note: async (_model, seen) => void Object.assign(known.abilities, seen),
  }
  const client = createModelClient({ ...server, timeoutMs: 3_600_000, memory })
  let away = 0
  let isSlowOnly = true
  return {
    async ask({ messages, tools: offered, maxTokens, timeoutMs, isFirst, isOnly = false, remedy }) {
      // Uses one deadline for the request and its repetition, because a server that requests a long
      // wait must not block the command.
      const ends = AbortSignal.timeout(timeoutMs)
      const complete = () =>
        client.complete({
          messages,
          ...(offered.length > 0 ? { tools: offered } : { form: answerForm }),
          temperature: server.temperature,
          maxTokens,
          maxWithReasoning: maxTokens * 16,
          model: server.model,
          signal: ends,
        })
      const answer = await askTwice(complete, server, { isFirst, timeoutMs, ends })
      const isLost = 'failed' in answer && answer.isAway
      away = isLost ? away + 1 : 0
      isSlowOnly &&= isLost
      if (away < (isOnly ? 1 : maxAway)) return answer
      const said = 'failed' in answer ? answer.failed : ''
      if (isSlowOnly) {
        const at = inert(new URL(server.baseUrl).origin)
        const seconds = Math.round(timeoutMs / 1000)
        throw new CommandFailed(
          'error',
          `${at} gave no answer within ${seconds} s${isOnly ? '' : `, ${maxAway} times`}.`,
          'Check the log of the server. Give a slow server more time with --minutes.',
        )
      }
      throw new CommandFailed('error', `The model server does not answer any more: ${said}`, `${remedy} Check its log.`)
    },
    async learned() {
      const served = await readServedModel({ ...server, baseUrl: baseUrlOf(server.baseUrl) })
      const shape = Object.fromEntries(
        Object.entries(known.shape).filter(([name, value]) => value !== plainShape[name as keyof RequestShape]),
      )
      return { shape, abilities: known.abilities, served }
    },
  }
}

type Try = { isFirst: boolean; timeoutMs: number; ends: AbortSignal }

/**
 * Sends a request again if the server was busy or failed. Throws errors that would affect every
 * further request.
 */
async function askTwice(
  complete: () => Promise<Exclude<CheckReply, { failed: string }>>,
  server: ModelServer,
  each: Try,
): Promise<CheckReply> {
  try {
    return await complete()
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    if (!isPassing(error)) return await failure(error, server, each)
    const waitMs = Math.min(error.retryAfterMs ?? 1_000, maxWaitMs)
    await sleep(waitMs, undefined, { signal: each.ends }).catch(() => undefined)
    if (each.ends.aborted) return await failure(error, server, each)
    return await complete().catch((again: unknown) => {
      if (!(again instanceof ModelError)) throw again
      return failure(again, server, each)
    })
  }
}

function isPassing({ code, status }: ModelError): boolean {
  return code === 'rate_limited' || (code === 'unavailable' && status !== null)
}

async function failure(error: ModelError, server: ModelServer, { isFirst, timeoutMs }: Try): Promise<CheckReply> {
  const at = inert(new URL(server.baseUrl).origin)
  const said = inert(error.message)
  const lacksTools = error.message.includes('LLM_PROTOCOL=json')
  const isAway = error.code === 'unavailable' || error.code === 'rate_limited' || error.code === 'aborted'
  if (error.code === 'unauthorised') {
    throw new CommandFailed(
      'auth',
      `${at} refuses the key: ${said}.`,
      'Set LLM_API_KEY, or LLM_API_KEY_FILE to a file with the key.',
    )
  }
  const isUnknownModel =
    error.status === 404 ||
    (error.code === 'bad_request' &&
      /model.{0,80}(not found|not exist|unknown)|no such model|there is no model/i.test(error.message))
  if (isUnknownModel) throw await unknownModel(server, said)
  if (isFirst && isAway && error.code !== 'aborted') {
    throw new CommandFailed(
      'error',
      `${at} cannot be reached: ${said}.`,
      'Start the server, or correct --base-url (LLM_BASE_URL).',
    )
  }
  if (isFirst && error.code === 'bad_request' && !lacksTools) {
    throw new CommandFailed(
      'error',
      `${at} refuses the request: ${said}.`,
      "Correct the server's settings: docs/reference/models.md.",
    )
  }
  const failed =
    error.code === 'aborted'
      ? `The model did not answer within ${Math.round(timeoutMs / 1000)} s. Give the model more time with --minutes.`
      : `The model's answer cannot be read: ${said}.`
  return { failed, lacksTools, isAway }
}

const listed = z.object({ data: z.array(z.object({ id: z.string() })) })
const maxListed = 8

async function unknownModel({ baseUrl, apiKey, model }: ModelServer, said: string): Promise<CommandFailed> {
  const names = await listModels(baseUrl, apiKey)
  const shown = names.slice(0, maxListed).map((name) => inert(name.slice(0, 100)))
  const more = names.length > maxListed ? `, and ${names.length - maxListed} more` : ''
  const remedy =
    shown.length > 0
      ? `The server has ${shown.join(', ')}${more}: give one of these names with --model.`
      : 'Correct --base-url or --model.'
  return new CommandFailed('notFound', `There is no model ${inert(model)} at ${inert(baseUrl)}: ${said}.`, remedy)
}

async function listModels(baseUrl: string, apiKey: string): Promise<string[]> {
  try {
    const answer = await request({
      method: 'GET',
      url: `${baseUrlOf(baseUrl)}/models`,
      headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
      timeoutMs: 5_000,
      maxBytes: 4_000_000,
      allow: 'private',
    })
    return listed.parse(JSON.parse(Buffer.from(answer.body).toString())).data.map(({ id }) => id)
  } catch {
    // Ignores the error: without a list of models, the remedy names only the settings.
    return []
  }
}
