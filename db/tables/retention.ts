import type { Generated } from 'kysely'
import type { Json, NullableTime, Time } from '../tables.ts'

/** Tombstones, holds, and when a round looked last. */
export type RetentionTables = {
  /** One transaction that removed incidents. Written by the database's own function alone. */
  removal: { id: number; tx: string; at: string; rule: string; before: string }
  /** What stays of an incident that is gone: its tombstone. */
  removedIncident: { incidentId: string; removalId: number; rows: number; headHash: string; closedAt: string }
  incidentHold: {
    id: string
    incidentId: string
    reason: string
    heldBy: string
    heldAt: Time
    endedAt: NullableTime
    endedBy: string | null
  }
  /** Bodies of incidents that are gone, which other rows may still name. */
  bodyCandidate: { digest: string; since: Time }
  /** A person whose data went. Written by the database's own function alone. */
  erasure: { id: number; tx: string; at: string; operatorId: string; pseudonym: string }
  /** The rest of a chain's row that named them: its hash, and the digest of today's content. */
  erasedRow: { erasureId: number; ofTable: 'incident_event' | 'audit'; rowId: string; hash: string; digest: string }
  personalColumn: { ofTable: string; ofColumn: string; own: string }
  /** Written by a restore, as the owner. */
  restoration: { id: number; backupAt: string; restoredAt: string }
  retentionRound: {
    singleton: Generated<boolean>
    beganAt: Time
    endedAt: NullableTime
    removed: Json<Record<string, number>>
  }
}
