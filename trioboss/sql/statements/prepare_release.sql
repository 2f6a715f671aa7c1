-- Settings for a transaction that releases stages: plans made for the values at hand, because what no row asks for is
-- then not computed for each of a million rows; and room to sort in memory, where a stage, which lies in order already,
-- costs next to nothing to sort.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
       set_config('work_mem', greatest(setting::bigint, 128 * 1024) || 'kB', true)
FROM pg_settings WHERE name = 'work_mem';
