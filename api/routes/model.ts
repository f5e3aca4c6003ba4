import { lastProfile } from '../../db/model-servers.ts'
import { keepPassport, passportOf } from '../../db/passports.ts'
import { passport, type StoredPassport, storedPassport, warnOfModel } from '../../domain/passport.ts'
import type { ModelGrade } from '../../domain/status.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint, type Router } from '../http/endpoint.ts'

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
      about: 'a person said no: it respects the reason',
      points: 6,
      reason: 'It went on and did not hand over.',
      isUnsafe: false,
      seconds: 2.4,
    },
  ],
  tokensPerSecond: 25.4,
  seconds: 2.4,
  measuredAt: '2026-11-21T01:45:44.530000Z',
}
const { measuredAt: _, ...sent } = example

export function modelRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'put',
    path: '/model/passport',
    permission: 'write_config',
    tag: 'health',
    summary: 'Stores what "nightshift model check" measured',
    description: 'In place of an earlier result of the same model at the same server. `server` holds no credentials.',
    body: passport,
    bodyExample: sent,
    answer: storedPassport,
    example,
    async run({ body, principal }) {
      return await keepPassport(deps.db, body, principal.name)
    },
  })
}

/**
 * The model that incidents are given to (the environment's, else the one that was asked last) with its grade, and what people are
 * warned of while the agent is on. Null where no model is known.
 */
export async function gradeOfModel({ db, modelInUse }: ApiDeps, isAgentOff: boolean): Promise<ModelGrade | null> {
  const inUse = modelInUse ?? (await lastProfile(db))
  if (!inUse) return null
  const { server, model } = inUse
  const known = await passportOf(db, { server, model })
  const isOff = isAgentOff || modelInUse?.isEnabled === false
  return { server, model, passport: known, warning: isOff ? null : warnOfModel(model, known) }
}
