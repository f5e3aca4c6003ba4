import type { DatabaseFault } from './faults.ts'
import { replayHeld, replicaDuplicateKey, replicaStopped, slotKeepsWal } from './replication.ts'
import { bloatPrepared, indexLost, planFlip, wraparound } from './upkeep.ts'
import { connectionsExhausted, deadlocks, idleBlocker, temporaryFiles } from './waits.ts'
import type { DatabaseFaultWork } from './work.ts'

export const faultWork: Record<DatabaseFault, DatabaseFaultWork> = {
  db_idle_blocker: idleBlocker,
  db_slot_keeps_wal: slotKeepsWal,
  db_replica_stopped: replicaStopped,
  db_replay_held: replayHeld,
  db_temp_files: temporaryFiles,
  db_replica_duplicate_key: replicaDuplicateKey,
  db_connections_exhausted: connectionsExhausted,
  db_wraparound: wraparound,
  db_bloat_prepared: bloatPrepared,
  db_plan_flip: planFlip,
  db_index_lost: indexLost,
  db_deadlocks: deadlocks,
}
