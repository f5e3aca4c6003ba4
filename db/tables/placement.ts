import type { Generated } from 'kysely'
import type { Obstacle, Plan, Proof, Standing } from '../../domain/placement.ts'
import type { Json, JsonOrDefault, Time } from './column.ts'

/** Plans of who runs where. */
export type PlacementTables = {
  proposal: {
    id: string
    incidentId: string | null
    intent: string
    hostIds: Json<string[]>
    state: string
    migrations: number
    steps: Json<unknown>
    lowerBound: Generated<number>
    fromInventory: Generated<boolean>
    proof: JsonOrDefault<Proof>
    unplaced: JsonOrDefault<Plan['unplaced']>
    obstacle: Json<Obstacle | null> | null
    standing: Json<Standing | null> | null
    reason: string | null
    planDigest: string
    stateFingerprint: string
    problem: Json<unknown>
    createdAt: Time
  }
}
