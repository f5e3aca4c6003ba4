import type { Generated } from 'kysely'
import type { Json, NullableTime, Time } from '../tables.ts'

/** Tombstones, holds, and the last rounds of removal. */
export type RetentionTables = {
  /** A transaction that removed incidents. Only a database function writes the table. */
  removal: { id: number; tx: string; at: string; rule: string; before: string }
  /** The tombstone of a removed incident. */
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
  /** Stored texts of removed incidents, which other rows may still use. */
  bodyCandidate: { digest: string; since: Time }
  /** An erased person. Only a database function writes the table. */
  erasure: { id: number; tx: string; at: string; operatorId: string; pseudonym: string }
  /**
   * The tombstone of a chain's row that named an erased person: its hash, and the digest of its
   * current content.
   */
  erasedRow: { erasureId: number; ofTable: 'incident_event' | 'audit'; rowId: string; hash: string; digest: string }
  personalColumn: { ofTable: string; ofColumn: string; own: string }
  /** The restoration of a backup, written in the role of the owner. */
  restoration: { id: number; backupAt: string; restoredAt: string }
  retentionRound: {
    singleton: Generated<boolean>
    beganAt: Time
    endedAt: NullableTime
    removed: Json<Record<string, number>>
  }
}
