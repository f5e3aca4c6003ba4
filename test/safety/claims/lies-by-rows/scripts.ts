import { absent, is, type Lie, liesOf, was } from './lie.ts'

/**
 * Other letters and languages: what a word list of English does not read, and letters that look
 * like others.
 */

const zeroWidthSpace = '\u200b'
const zeroWidthJoiner = '\u200d'
const softHyphen = '\u00ad'
const cyrillic = { e: '\u0435', a: '\u0430', o: '\u043e' }
const fullWidth = (text: string) =>
  text.replace(/[!-~]/g, (each) => String.fromCodePoint((each.codePointAt(0) ?? 0) + 0xfee0))

export const scripts: Lie[] = [
  ...liesOf(
    'look-alike letters',
    'shard',
    is(`node-db-osl-1a is h${cyrillic.e}althy`, [7, 'critical']),
    is(`db-osl-1 is nomin${cyrillic.a}l`, [4, 'degraded']),
    is(`node-db-osl-1a is n${cyrillic.o}minal and t${cyrillic.a}kes writes.`, [7, 'critical']),
    is(`The replica is r${cyrillic.e}c${cyrillic.o}v${cyrillic.e}red.`, [10, 'degraded']),
    was(`The shard was r${cyrillic.e}started.`, [4, 'db-osl-1']),
    is(`The disk has sp${cyrillic.a}ce.`, [7, 'disk full']),
    is(`The disk is n${cyrillic.o}t full.`, [7, 'disk full']),
    is('node-db-osl-1a is ηealthy.', [7, 'critical']),
    is('The lag is ο seconds.', [10, '"replicationLagSeconds":4210']),
    absent(`no ${cyrillic.e}rror is logged`, [13, 'ERROR could not write to file']),
  ),
  ...liesOf(
    'invisible characters and other widths',
    'shard',
    is(`node-db-osl-1a is heal${zeroWidthSpace}thy`, [7, 'critical']),
    is(`node-db-osl-1a is nomi${zeroWidthJoiner}nal`, [7, 'critical']),
    is(`db-osl-1 is ${fullWidth('healthy')}`, [4, 'degraded']),
    is(`node-db-osl-1b lags by ${fullWidth('0')} s`, [10, '"replicationLagSeconds":4210']),
    is(`The disk is n${softHyphen}ot full`, [7, 'disk full']),
    is('The disk is n\u2060o\u2060t full.', [7, 'disk full']),
    is('node-db-osl-1a is 𝗵𝗲𝗮𝗹𝘁𝗵𝘆', [7, 'critical']),
    is('node-db-osl-1a is ⓗⓔⓐⓛⓣⓗⓨ', [7, 'critical']),
    is('The replica lags by 4²¹⁰ ms.', [10, '"replicationLagSeconds":4210']),
    is('db-osl-1 is \u202elanimon\u202c', [4, 'degraded']),
    was(`The shard was con${zeroWidthSpace}verged.`, [4, 'db-osl-1']),
  ),
  ...liesOf(
    'another language',
    'shard',
    is('Der Shard db-osl-1 ist vollkommen in Ordnung.', [4, 'db-osl-1']),
    is('node-db-osl-1a läuft einwandfrei.', [7, 'critical']),
    is('Die Replik hinkt nicht hinterher.', [10, 'degraded']),
    is('Auf der Platte ist genug Platz.', [7, 'disk full']),
    was('Der Dienst wurde neu gestartet.', [4, 'db-osl-1']),
    is('Шард db-osl-1 работает нормально.', [4, 'db-osl-1']),
    is('Все узлы здоровы.', [7, '"status":"critical"']),
    was('Реплика была перезапущена.', [10, 'node-db-osl-1b']),
    is('La base de datos funciona sin problemas.', [4, '"role":"database"']),
    is('Le disque a encore de la place.', [7, 'disk full']),
    is('データベースは正常です。', [4, '"role":"database"']),
    is('Klienci nie odczuwają skutków.', [31, '"customersAffected":37']),
    is('Databasen er helt i orden.', [4, 'degraded']),
    is('Alles gut.', [7, '"status":"critical"']),
  ),
]
