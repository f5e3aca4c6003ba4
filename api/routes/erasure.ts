import { z } from '@hono/zod-openapi'
import { operatorByName } from '../../db/access/operators.ts'
import { erasePerson, previewErasure } from '../../db/retention/erasure.ts'
import { erasure, erasureRefusals } from '../../domain/erasure.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

const tag = 'retention'
const params = z.object({ name: z.string().min(1).max(64) })
const rows = { operator: 1, audit: 41, incident_event: 12, row_change: 6 }

export const erasureRoutes = [
  endpoint({
    method: 'get',
    path: '/operators/{name}/erasure',
    permission: 'manage_operators',
    tag,
    summary: 'What the erasure of a person would change, by table, and what prevents it',
    params,
    answer: erasure,
    example: { pseudonym: null, rows, refusal: null },
    problems: [404],
    async run({ scope, params: { name } }) {
      const person = await operatorByName(scope, name)
      if (!person) throw notFound(`operator ${name}`)
      return await previewErasure(scope, person.id)
    },
  }),
  endpoint({
    method: 'post',
    path: '/operators/{name}/erasure',
    permission: 'manage_operators',
    tag,
    summary: "Erases a person's data (GDPR, article 17), for good",
    description:
      'The name and the ids at providers become a pseudonym, texts of the person become `[erased]`, and their tokens, sessions and browsers end. A row of a hash chain keeps its hash and gets a tombstone, so `verify` still succeeds. Only an earlier backup can restore the data. Refused for the last admin, for the caller, and while an incident of the person is open or held. `confirm` repeats the name.',
    params,
    body: z.strictObject({ confirm: z.string().max(64) }),
    bodyExample: { confirm: 'anna' },
    answer: erasure,
    example: { pseudonym: 'erased-01kaabbccddeeffgghhjjkkmmn', rows, refusal: null },
    problems: [404, 409],
    async run({ scope, params: { name }, body: { confirm }, principal }, { db }) {
      const person = await operatorByName(scope, name)
      if (!person) throw notFound(`operator ${name}`)
      if (confirm !== name) throw new Problem(409, 'CONFLICT', `confirm is not ${name}: nothing was erased.`)
      if (person.id === principal.operatorId)
        throw new Problem(409, 'OWN_ROLE', 'You cannot erase yourself. Ask another admin.')
      const done = await erasePerson(db, person, principal)
      if (done.refusal) throw new Problem(409, 'NOT_ERASED', erasureRefusals[done.refusal])
      return done
    },
  }),
]
