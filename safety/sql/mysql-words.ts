const words = (text: string) => new Set(text.trim().split(/\s+/))

/** Words of MySQL 8.4 and 9 and of MariaDB that are no name unless quoted (manual, "Keywords and Reserved Words"). */
export const reserved = words(`
  ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE CASE
  CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT CREATE CROSS CUBE CUME_DIST
  CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DAY_HOUR DAY_MICROSECOND
  DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT
  DISTINCTROW DIV DO DOUBLE DROP DUAL DUMPFILE EACH ELSE ELSEIF EMPTY ENCLOSED END ESCAPED EXCEPT EXECUTE EXISTS EXIT
  EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT
  GROUP GROUPING GROUPS HANDLER HAVING HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE
  INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IO_AFTER_GTIDS
  IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING LEAVE LEFT LIKE LIMIT
  LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY MANUAL MASTER_BIND
  MASTER_SSL_VERIFY_SERVER_CERT MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND
  MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL NUMERIC OF ON OPTIMIZE
  OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARALLEL PARTITION PERCENT_RANK PRECISION PRIMARY
  PROCEDURE PURGE QUALIFY RANGE RANK READ READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT
  REPLACE REQUIRE RESIGNAL RESTRICT RETURN RETURNING REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA SCHEMAS
  SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL SQLEXCEPTION SQLSTATE
  SQLWARNING SQL_BIG_RESULT SQL_BUFFER_RESULT SQL_CACHE SQL_CALC_FOUND_ROWS SQL_NO_CACHE SQL_SMALL_RESULT SSL STARTING
  STORED STRAIGHT_JOIN SYSTEM TABLE TABLESAMPLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE UNDO
  UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR
  VARCHARACTER VARYING VIRTUAL WAIT WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL FILTER OFFSET LATERAL
  NOWAIT SKIP LOCKED SHARE ATTACH DETACH PREPARE DEALLOCATE
`)

/** Functions of the manual's chapter 14 that compute or read and change nothing, wait for nothing, open no file. */
export const functions = words(`
  count sum avg min max std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor group_concat
  json_arrayagg json_objectagg any_value grouping row_number rank dense_rank percent_rank cume_dist ntile lag lead
  first_value last_value nth_value
  abs ceil ceiling floor round truncate sign sqrt pow power exp ln log log2 log10 mod pi rand conv crc32 greatest least
  format bin oct hex unhex
  if ifnull nullif coalesce isnull
  concat concat_ws length char_length character_length octet_length bit_length lower lcase upper ucase left right
  substr substring substring_index mid trim ltrim rtrim lpad rpad replace reverse repeat space locate instr position
  field find_in_set elt strcmp ascii ord char quote soundex regexp_like regexp_instr regexp_substr
  regexp_replace to_base64 from_base64 md5 sha sha1 sha2
  now curdate curtime current_date current_time current_timestamp sysdate utc_date utc_time utc_timestamp localtime
  localtimestamp date time year month day hour minute second microsecond quarter week weekday weekofyear yearweek
  dayofweek dayofmonth dayofyear dayname monthname date_add date_sub adddate subdate addtime subtime datediff timediff
  timestampdiff timestampadd timestamp date_format time_format str_to_date from_unixtime unix_timestamp from_days
  to_days to_seconds sec_to_time time_to_sec makedate maketime last_day extract convert_tz period_add period_diff
  cast convert inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6 is_uuid bin_to_uuid uuid_to_bin
  format_bytes format_pico_time
  json_extract json_unquote json_value json_contains json_contains_path json_keys json_length json_depth json_type
  json_valid json_array json_object json_quote json_search json_pretty json_overlaps json_storage_size
  version database schema user current_user session_user system_user connection_id current_role charset collation
  coercibility found_rows row_count gtid_subset gtid_subtract ps_current_thread_id ps_thread_id
`)

export const types = words('BINARY CHAR DATE DATETIME DECIMAL DOUBLE FLOAT JSON REAL SIGNED TIME UNSIGNED YEAR INTEGER')

export const operators = words('AND OR XOR LIKE REGEXP RLIKE DIV MOD BETWEEN ESCAPE')

export const constants = words(`
  NULL TRUE FALSE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME
  UTC_TIMESTAMP
`)

export const intervalUnits = words(`
  MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR SECOND_MICROSECOND MINUTE_MICROSECOND MINUTE_SECOND
  HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH
`)

/** Tables of the schema `mysql` that hold no account, key, connection or statement. */
export const harmlessSystemTables = words(`
  innodb_index_stats innodb_table_stats gtid_executed help_category help_keyword help_relation help_topic time_zone
  time_zone_leap_second time_zone_name time_zone_transition time_zone_transition_type engine_cost server_cost
`)

/** Tables that hold password hashes, keys or passwords, under whatever schema is the default. */
export const secretTables = words(`
  user authentication_string global_priv db proxies_priv password_history slave_master_info
  slave_relay_log_info servers default_roles role_edges user_variables_by_thread keyring_keys keyring_component_status
  user_attributes persisted_variables session_connect_attrs session_account_connect_attrs
`)

/** Words the client itself obeys at the start of a line. */
export const clientCommands = words(
  'SOURCE SYSTEM TEE NOTEE PAGER NOPAGER EDIT DELIMITER CONNECT USE EXIT QUIT GO EGO CLEAR PRINT PROMPT REHASH RESETCONNECTION',
)
