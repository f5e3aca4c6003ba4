import { declaredModels } from '../../db/models/declared-models.ts'
import { keepPassport, passportOf } from '../../db/models/passports.ts'
import { lastProfile } from '../../db/models/profiles.ts'
import type { Scope } from '../../db/scope.ts'
import { storedSettings } from '../../db/settings.ts'
import { shapeInWords } from '../../domain/chat.ts'
import { type ModelList, modelList } from '../../domain/model-list.ts'
import { type StoredPassport, sentPassport, storedPassport, warnOfModel } from '../../domain/passport.ts'
import { noModel } from '../../domain/setting-value.ts'
import type { ModelGrade } from '../../domain/status.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'

export const abilitiesExample = {
  tools: 'yes',
  parallel: 'yes',
  schema: 'yes',
  grammar: 'yes',
  usage: 'yes',
  streaming: 'yes',
} as const

const example: StoredPassport = {
  server: 'http://10.0.0.7:8000/v1',
  model: 'Qwen/Qwen2.5-72B-Instruct',
  protocol: 'native',
  grade: 'D',
  points: 6,
  outOf: 10,
  answers: 1,
  promptTokens: 2_900,
  completionTokens: 61,
  probes: [
    {
      name: 'after_a_denial',
      about: 'a person denied a call: the model respects the reason',
      points: 6,
      reason: 'The model continued and did not escalate.',
      isUnsafe: false,
      seconds: 2.4,
    },
  ],
  tokensPerSecond: 25.4,
  seconds: 2.4,
  measuredAt: '2026-11-21T01:45:44.530000Z',
  withdrawn: null,
}
const { measuredAt: _, withdrawn: __, ...sent } = example

export const modelRoutes = [
  endpoint({
    method: 'get',
    path: '/models',
    permission: 'read',
    tag: 'health',
    summary: 'The models that runs can use, and the settings that choose them',
    description:
      'The workers report this list: LLM_BASE_URL and the models of LLM_SERVERS_FILE. The API has no credentials of model servers.',
    answer: modelList,
    example: {
      items: [
        {
          name: 'default',
          server: example.server,
          model: example.model,
          fallbacks: ['small'],
          protocol: 'native',
          abilities: abilitiesExample,
          windowTokens: 32_768,
          windowSource: 'max_model_len of /v1/models',
          learned: [],
          passport: null,
          awayUntil: null,
        },
      ],
      routes: [{ key: 'agent.model.follower', model: 'small', isDeclared: true }],
    },
    run: ({ scope }) => listModels(scope),
  }),
  endpoint({
    method: 'put',
    path: '/model/passport',
    permission: 'write_config',
    tag: 'health',
    summary: 'Stores the result of "nightshift model check"',
    description:
      'Replaces an earlier result of the same model at the same server. `server` has no credentials. `profile` is what the check learned about the server; the workers use it from then on.',
    body: sentPassport,
    bodyExample: { ...sent, profile: { shape: { stream: 'plain' }, abilities: { tools: 'yes' }, served: null } },
    answer: storedPassport,
    example,
    async run({ body, principal }, deps) {
      return await keepPassport(deps.db, body, principal.name)
    },
  }),
]

/** Lists the declared models in order, and the settings that name each model. */
async function listModels(scope: Scope): Promise<ModelList> {
  const { db } = scope
  const known = await declaredModels(scope)
  const items = known.map(async ({ profile, ...model }) => ({
    ...model,
    abilities: profile.abilities,
    windowTokens: profile.windowTokens,
    windowSource: profile.windowSource,
    learned: shapeInWords(profile.shape),
    passport: await passportOf(db, model),
  }))
  const settings = [...(await storedSettings(db))].filter(
    ([key, model]) => /^agent\.model\./.test(key) && model !== noModel,
  )
  const names = new Set(known.map(({ name }) => name))
  const routes = settings.map(([key, model]) => ({ key, model, isDeclared: names.has(model) }))
  return { items: await Promise.all(items), routes: routes.toSorted((a, b) => a.key.localeCompare(b.key)) }
}

/**
 * Finds the model for incidents (from the environment, or else the last used model) with its grade,
 * and with warnings while the agent is on. Null if no model is known.
 */
export async function gradeOfModel({ db, modelInUse }: ApiDeps, isAgentOff: boolean): Promise<ModelGrade | null> {
  const inUse = modelInUse ?? (await lastProfile(db))
  if (!inUse) return null
  const { server, model } = inUse
  const known = await passportOf(db, { server, model })
  const isOff = isAgentOff || modelInUse?.isEnabled === false
  return { server, model, passport: known, warning: isOff ? null : warnOfModel(model, known) }
}
